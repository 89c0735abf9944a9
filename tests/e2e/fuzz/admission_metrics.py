"""What the API server counts about our webhooks: calls that it went on without, and calls that took over a second."""

import re
from collections.abc import Iterator
from typing import Final

from cluster.cluster import Cluster
from tests.e2e.monitor.findings import Finding

_FAILED_OPEN: Final = re.compile(
    r'^apiserver_admission_webhook_fail_open_count\{name="(\S+?)".*\} (\S+)$', re.MULTILINE
)
_DURATION: Final = re.compile(
    r'^apiserver_admission_webhook_admission_duration_seconds_bucket\{name="(\S+?)".*,le="(1|\+Inf)"\} (\S+)$',
    re.MULTILINE,
)


class AdmissionMetrics:
    """The counters as they were at the last call of `grown`."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._last = self._read()

    def grown(self) -> Iterator[Finding]:
        """Yield a finding for each counter that has grown since the last call."""
        now = self._read()
        for what, count in now.items():
            more = count - self._last.get(what, 0)
            if more > 0:
                yield Finding(what, f"{more:.0f} times in one round")
        self._last = now

    def _read(self) -> dict[str, float]:
        text = self._cluster.api.text("/metrics")
        counts: dict[str, float] = {}
        for name, count in _FAILED_OPEN.findall(text):
            _add(counts, f"the API server went on without {name}", float(count))
        for name, bound, count in _DURATION.findall(text):
            _add(counts, f"{name} took more than 1 s", float(count) if bound == "+Inf" else -float(count))
        return counts


def _add(counts: dict[str, float], what: str, count: float) -> None:
    counts[what] = counts.get(what, 0) + count
