"""Calls of our webhooks that took too long, from the API server's audit log.

The API server writes into the audit event of a request over 500 ms how long its calls of webhooks took, from the sent
request to the read answer. Its metric `apiserver_admission_webhook_admission_duration_seconds` also counts what the API
server itself does with an object before and after the call, which takes seconds for an object of megabytes.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.e2e.monitor.findings import Finding

_CALLS: Final = re.compile(rb'"apiserver\.latency\.k8s\.io/(mutating|validating)-webhook":"([^"]+)"')
_NAME: Final = re.compile(rb'"objectRef":\{[^}]*?"name":"([^"]*)"')
_UNITS: Final = re.compile(r"([\d.]+)(ms|[hms]|.s)")
_SECONDS: Final = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3}  # of a shorter unit nothing counts


class WebhookLatency:
    """The audit log, from where the last call of `slow` ended. The API server begins a new file each 100 MB.

    Args:
        log: path of the file that is written now.
        slow_s: calls that took longer are found.
    """

    def __init__(self, log: Path, slow_s: float) -> None:
        self._log = log
        self._slow_s = slow_s
        self._read: dict[int, int] = {}  # bytes, by inode
        for path in self._files():
            self._read[path.stat().st_ino] = path.stat().st_size

    def slow(self) -> Iterator[Finding]:
        """Yield a finding for each request that waited longer for our webhooks."""
        for line in self._lines():
            for kind, text in _CALLS.findall(line):
                if (took := seconds(text.decode())) > self._slow_s:
                    name = _NAME.search(line)
                    subject = name[1].decode() if name else ""
                    yield Finding(f"{kind.decode()} webhook took too long", f"{took:.2f} s", subject)

    def _lines(self) -> Iterator[bytes]:
        for path in self._files():
            with path.open("rb") as file:
                inode = path.stat().st_ino
                file.seek(self._read.get(inode, 0))
                for line in file:
                    if line.endswith(b"\n"):
                        self._read[inode] = self._read.get(inode, 0) + len(line)
                        yield line

    def _files(self) -> list[Path]:
        return sorted(self._log.parent.glob(f"{self._log.stem}*{self._log.suffix}"))


def seconds(duration: str) -> float:
    """Return Go's text of a duration, such as `1m2.5s` or `812.3ms`, in seconds."""
    return sum(float(number) * _SECONDS.get(unit, 0.0) for number, unit in _UNITS.findall(duration))
