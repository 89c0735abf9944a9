"""Metrics in Prometheus' text formats. No other module imports prometheus_client.

https://prometheus.io/docs/instrumenting/exposition_formats/ and https://prometheus.io/docs/practices/naming/
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Protocol, cast

import prometheus_client
from prometheus_client import CollectorRegistry, exposition
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric as LibraryFamily

from vgpu.domain import printable

prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call]  # a series for each counter and histogram that says when it began

MAX_LABEL: Final = 253  # characters of a label: as many as the longest name in Kubernetes, so that names stay apart


class MetricKind(StrEnum):
    """How a metric behaves: a counter only grows, except at a restart."""

    GAUGE = "gauge"
    COUNTER = "counter"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric's definition.

    Attributes:
        name: with its base unit, and `_total` at the end of a counter's.
        kind: how it behaves.
        help: what it says, without a full stop.
        labels: names of the labels.
    """

    name: str
    kind: MetricKind
    help: str
    labels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MetricFamily:
    """The values of a metric now: each with the values of its labels."""

    metric: Metric
    samples: Sequence[tuple[tuple[str, ...], float]]


Collect = Callable[[], Iterable[MetricFamily]]


class Counting(Protocol):
    """A counter with its labels."""

    def inc(self) -> None:
        """Add 1 to the counter."""


class Observing(Protocol):
    """A histogram with its labels."""

    def observe(self, amount: float) -> None:
        """Add a value."""


class Registry:
    """The metrics of one program."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry(auto_describe=False)

    def add(self, collect: Collect) -> None:
        """Ask `collect` for values whenever the metrics are read; it is called in any thread."""
        self._registry.register(_Collector(collect))

    def counter(self, metric: Metric) -> Callable[..., Counting]:
        """Add a counter; call what is returned with the values of its labels."""
        made = prometheus_client.Counter(metric.name, metric.help, metric.labels, registry=self._registry)
        return cast("Callable[..., Counting]", made.labels if metric.labels else lambda: made)

    def histogram(self, metric: Metric, buckets: Sequence[float]) -> Callable[..., Observing]:
        """Add a histogram; call what is returned with the values of its labels."""
        made = prometheus_client.Histogram(
            metric.name, metric.help, metric.labels, buckets=tuple(buckets), registry=self._registry
        )
        return cast("Callable[..., Observing]", made.labels if metric.labels else lambda: made)

    def render(self, accept: str) -> tuple[bytes, str]:
        """Return all metrics in the format that the header `Accept` asks for, and its content type. May block."""
        encode, content_type = exposition.choose_encoder(accept)
        return encode(self._registry), content_type


def content_type(accept: str) -> str:
    """Return the content type that `render` answers an `Accept` with."""
    return exposition.choose_encoder(accept)[1]


class _Collector:
    def __init__(self, collect: Collect) -> None:
        self._collect = collect

    def collect(self) -> Iterator[LibraryFamily]:
        for family in self._collect():
            yield _encoded(family)


def _encoded(family: MetricFamily) -> LibraryFamily:
    metric = family.metric
    kind = CounterMetricFamily if metric.kind is MetricKind.COUNTER else GaugeMetricFamily
    made = kind(metric.name, metric.help, labels=metric.labels)
    for labels, value in family.samples:
        made.add_metric([printable.line(label[:MAX_LABEL]) for label in labels], value)
    return made
