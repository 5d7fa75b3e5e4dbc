"""What `promtool check metrics` finds fault with, and what it does not look at: labels that have no bound.

The rules are those of Prometheus' naming conventions. `problems` takes the text format and parses it strictly.
"""

import re
from collections.abc import Iterator

from prometheus_client.parser import text_string_to_metric_families

from tests.parts.telemetry.parsed import Scraped

__all__ = ["BOUNDED", "problems"]

BOUNDED = frozenset(
    {
        "agent",
        "profile",
        "state",
        "activity",
        "type",
        "code",
        "reason",
        "kind",
        "status",
        "outcome",
        "version",
        "python",
        "le",
    }
)
"""Names of labels that may be used: what each of them may be is bounded."""

_UNITS = {"seconds", "bytes", "ratio", "dollars"}
_NOT_BASE = re.compile(
    r"(?:^|_)(?:milliseconds?|microseconds?|nanoseconds?|minutes?|hours?|days?|ms|us|ns|sec|min|"
    r"kilobytes?|megabytes?|kb|mb|kib|mib|bits?|percent|celcius|cpm|qps)(?:_|$)"
)
_TYPE_WORDS = re.compile(r"(?:^|_)(?:gauge|counter|histogram|summary)(?:_|$)")
_SNAKE = re.compile(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)*")


def problems(text: str) -> list[str]:
    """Empty where there is nothing wrong."""
    found = [problem for family in text_string_to_metric_families(text) for problem in _of(family)]
    # The parser gives a counter that ending where it has none.
    counters = re.findall(r"^# TYPE (\S+) counter$", text, re.MULTILINE)
    return [*found, *(f"{name}: a counter ends with _total" for name in counters if not name.endswith("_total"))]


def _of(family: Scraped) -> Iterator[str]:
    # The parser takes a counter's ending off.
    name = f"{family.name}_total" if family.type == "counter" else family.name
    if not name.startswith("synapse_"):
        yield f"{name}: does not begin with synapse_"
    if not family.documentation.strip():
        yield f"{name}: has no help"
    if not _SNAKE.fullmatch(name):
        yield f"{name}: is not in snake case"
    if family.type != "counter" and name.endswith("_total"):
        yield f"{name}: only counters end with _total"
    if family.type != "histogram" and re.search(r"_(bucket|count|sum)$", name):
        yield f"{name}: that ending is a histogram's"
    if found := _NOT_BASE.search(name):
        yield f"{name}: {found[0].strip('_')} is not a base unit"
    if found := _TYPE_WORDS.search(name):
        yield f"{name}: has its type in its name"
    units = [word for word in name.removesuffix("_total").split("_") if word in _UNITS]
    if units and not name.removesuffix("_total").endswith(units[-1]):
        yield f"{name}: its unit does not end it"
    if family.type == "histogram" and not units:
        yield f"{name}: a histogram has a unit"
    labels = {label for sample in family.samples for label in sample.labels}
    if unbounded := labels - BOUNDED:
        yield f"{name}: labels that are not known to be bounded: {', '.join(sorted(unbounded))}"
    if "le" in labels and family.type != "histogram":
        yield f"{name}: le is a histogram's label"
    series = [(sample.name, tuple(sorted(sample.labels.items()))) for sample in family.samples]
    if len(series) != len(set(series)):
        yield f"{name}: a series stands there twice"
