"""What the API server counts about our webhooks: requests that it accepted although a webhook did not answer."""

import re
from collections import Counter
from collections.abc import Iterator
from typing import Final

from cluster.cluster import GpuCluster
from tests.e2e.monitor.findings import Finding

_FAILED_OPEN: Final = re.compile(
    r'^apiserver_admission_webhook_fail_open_count\{name="(\S+?)".*\} (\S+)$', re.MULTILINE
)


class AdmissionMetrics:
    """The counters as they were at the last call of `grown`."""

    def __init__(self, cluster: GpuCluster) -> None:
        self._cluster = cluster
        self._last = self._read()

    def grown(self) -> Iterator[Finding]:
        """Yield a finding for each counter that has grown since the last call."""
        now = self._read()
        for what, count in now.items():
            more = count - self._last[what]
            if more > 0:
                yield Finding(what, f"{more} times in one round")
        self._last = now

    def _read(self) -> Counter[str]:
        text = self._cluster.api.text("/metrics")
        counts: Counter[str] = Counter()
        for name, count in _FAILED_OPEN.findall(text):
            counts[f"the API server went on without {name}"] += int(float(count))
        return counts
