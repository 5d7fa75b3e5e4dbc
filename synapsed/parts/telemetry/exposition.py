"""Writes metrics as text, in Prometheus' format or OpenMetrics', with prometheus-client, a few samples at a time.

Its encoders write a whole registry at once, some 20 µs a sample: with 300 agents the event loop would stand still for
longer than it may. So each call gets a family with a few samples, and the heads of all but the first piece are left
out. This is the only module that knows the library.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from itertools import batched
from typing import Any

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.exposition import choose_encoder

from synapsed.interfaces import Histogram
from synapsed.parts.telemetry.families import Family, Sample, Sheet

PIECE = 32
"""Samples that are written between two turns of the event loop; a histogram counts as one, and is written alone."""

_END = b"# EOF\n"

type Encoder = Callable[[Any], bytes]
"""Writes the samples that a registry collects."""


def encoder_for(accept: str) -> tuple[Encoder, str]:
    """Returns the encoder that the client requests with `Accept`, and the content type: OpenMetrics, or Prometheus'
    text."""
    return choose_encoder(accept)


async def expose(sheets: Iterable[Sheet], encode: Encoder) -> AsyncIterator[bytes]:
    """Yields the document, in pieces; other work can run between them."""
    ended = False
    for sheet in sheets:
        for number, samples in enumerate(_pieces(sheet)):
            text = encode(_Alone(_metric(sheet.family, samples)))
            ended = ended or text.endswith(_END)
            yield _body(text.removesuffix(_END), head=number == 0)
            await asyncio.sleep(0)
    if ended:
        yield _END


class _Alone:
    """A registry of one family."""

    def __init__(self, metric: Metric) -> None:
        self._metric = metric

    def collect(self) -> Iterable[Metric]:
        return [self._metric]


def _pieces(sheet: Sheet) -> Iterator[tuple[Sample, ...]]:
    """Yields at least one piece, so that a family without samples is described all the same."""
    pieces = batched(sheet.samples, 1 if sheet.family.kind == "histogram" else PIECE)
    first = next(pieces, ())
    yield first
    yield from pieces


def _body(text: bytes, *, head: bool) -> bytes:
    if head:
        return text
    lines = text.removesuffix(b"\n").split(b"\n")  # a carriage return is part of a value, and ends no line
    return b"".join(line + b"\n" for line in lines if not line.startswith(b"#"))


def _metric(family: Family, samples: Iterable[Sample]) -> Metric:
    match family.kind:
        case "info":
            info = InfoMetricFamily(family.name.removesuffix("_info"), family.about)
            for sample in samples:
                info.add_metric([], dict(zip(family.labels, sample.labels, strict=True)))
            return info
        case "histogram":
            return _histogram(family, samples)
        case "counter":
            counter = CounterMetricFamily(family.name, family.about, labels=family.labels)
            for sample in samples:
                counter.add_metric(sample.labels, _number(sample))
            return counter
        case _:
            gauge = GaugeMetricFamily(family.name, family.about, labels=family.labels)
            for sample in samples:
                gauge.add_metric(sample.labels, _number(sample))
            return gauge


def _histogram(family: Family, samples: Iterable[Sample]) -> Metric:
    metric = HistogramMetricFamily(family.name, family.about, labels=family.labels)
    for sample in samples:
        assert isinstance(sample.value, Histogram)
        buckets, count = [], 0
        for bound, number in zip((*sample.value.bounds, "+Inf"), sample.value.counts, strict=True):
            count += number
            buckets.append((str(bound), count))
        metric.add_metric(sample.labels, buckets=buckets, sum_value=sample.value.total)
    return metric


def _number(sample: Sample) -> float:
    assert not isinstance(sample.value, Histogram)
    return sample.value
