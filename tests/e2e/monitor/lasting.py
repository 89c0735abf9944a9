"""Findings that last: what API server, kubelets and parts say differs for a moment whenever a pod ends."""

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from cluster import wait
from tests.e2e.monitor.findings import Finding

LOOKS: Final = round(wait.allowed(5))
PAUSE_S: Final = 3.0  # a report of a plugin is up to two seconds older than its kubelet


def findings(
    look: Callable[[], Iterable[Finding]], *, looks: int = LOOKS, sleep: Callable[[float], None] = time.sleep
) -> Sequence[Finding]:
    """Return what the last look found of what each look before it found too; stops at the first look without any.

    Two findings are the same where kind and subject are equal: their details have numbers that change.
    """
    found = list(look())
    for _ in range(looks - 1):
        if not found:
            break
        before = {(finding.kind, finding.subject) for finding in found}
        sleep(PAUSE_S)
        found = [finding for finding in look() if (finding.kind, finding.subject) in before]
    return found
