"""The webhook's metrics: how long the reviews take, and how they are answered."""

from collections.abc import Awaitable, Callable, Iterable
from datetime import datetime
from typing import Final, TypeVar

from vgpu.adapters.metrics import Metric, MetricFamily, MetricKind, Registry
from webhook.admission import ReviewOutcome

T = TypeVar("T")

REVIEW_SECONDS: Final = Metric(
    "vgpu_webhook_review_seconds", MetricKind.HISTOGRAM, "Time of a review, by path: mutate, validate", ("path",)
)
REVIEWS: Final = Metric(
    "vgpu_webhook_reviews_total",
    MetricKind.COUNTER,
    "Reviews by outcome: allowed, changed (allowed with a patch), denied, unreadable (denied)",
    ("outcome",),
)
CERTIFICATE_END: Final = Metric(
    "vgpu_webhook_certificate_end_timestamp_seconds",
    MetricKind.GAUGE,
    "Unix time at which the certificate expires that the API server is shown; no value before there is one",
)
CATALOGUE: Final = (REVIEW_SECONDS, REVIEWS, CERTIFICATE_END)
BUCKETS: Final = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 3)
PATHS: Final = ("mutate", "validate")


def certificate(ends: Callable[[], datetime | None]) -> Iterable[MetricFamily]:
    """Return when the serving certificate expires; `ends` is asked for it."""
    at = ends()
    return [MetricFamily(CERTIFICATE_END, [((), at.timestamp())] if at is not None else [])]


class ReviewMetrics:
    """What the reviews count. `clock` is monotonic, in seconds."""

    def __init__(self, registry: Registry, clock: Callable[[], float]) -> None:
        seconds, reviews = registry.histogram(REVIEW_SECONDS, BUCKETS), registry.counter(REVIEWS)
        self._seconds = {path: seconds(path) for path in PATHS}
        self._reviews = {outcome: reviews(str(outcome)) for outcome in ReviewOutcome}
        self._clock = clock

    async def timed(self, path: str, answering: Awaitable[T]) -> T:
        """Return the answer to a review, and take its time."""
        began = self._clock()
        try:
            return await answering
        finally:
            self._seconds[path].observe(self._clock() - began)

    def count(self, outcome: ReviewOutcome) -> None:
        """Count a review."""
        self._reviews[outcome].inc()
