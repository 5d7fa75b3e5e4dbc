"""A scrape as its samples; what is not well-formed fails to parse."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

__all__ = ["OPENMETRICS", "Scrape", "Scraped"]

OPENMETRICS = "application/openmetrics-text;version=1.0.0"


class Scraped(Protocol):
    """What the library's parsers give."""

    name: str
    type: str
    documentation: str
    samples: Sequence[Any]


@dataclass(frozen=True)
class Scrape:
    """By name and labels."""

    values: Mapping[tuple[str, frozenset[tuple[str, str]]], float]
    families: frozenset[str]

    @classmethod
    def of(cls, text: str) -> "Scrape":
        openmetrics = text.endswith("# EOF\n")
        found: Iterable[Scraped] = parse_openmetrics(text) if openmetrics else parse_text(text)
        families = list(found)
        values = {
            (sample.name, frozenset(sample.labels.items())): sample.value
            for family in families
            for sample in family.samples
        }
        return cls(values, frozenset(family.name for family in families))

    def __call__(self, name: str, **labels: str) -> float | None:
        """The one sample with exactly these labels."""
        return self.values.get((name, frozenset(labels.items())))

    def sum(self, name: str, **labels: str) -> float:
        """Of all samples that have these labels among theirs."""
        wanted = set(labels.items())
        return sum(value for (one, own), value in self.values.items() if one == name and wanted <= own)

    def labels(self, label: str) -> set[str]:
        """Every value that the label has anywhere."""
        return {value for _, own in self.values for name, value in own if name == label}
