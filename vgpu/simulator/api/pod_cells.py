"""What `kubectl get pods` shows of a pod, by the rules of the API server's printer.

https://github.com/kubernetes/kubernetes/blob/v1.36.0/pkg/printers/internalversion/printers.go (printPod)
"""

from collections.abc import Iterator, Mapping
from typing import Any

from vgpu.domain.json_types import JsonObject


def ready(pod: JsonObject) -> str:
    """Return the ready containers of all: `1/2`."""
    count = sum(bool(container.get("ready")) for container in _statuses(pod))
    return f"{count}/{len(pod['spec'].get('containers') or ())}"


def restarts(pod: JsonObject) -> str:
    """Return how often containers were restarted."""
    return str(sum(container.get("restartCount") or 0 for container in _statuses(pod)))


def status(pod: JsonObject) -> str:
    """Return the word for people: why a container waits or has ended, else the pod's reason or phase."""
    said = pod.get("status") or {}
    word = next(_reasons(pod), "") or said.get("reason") or said.get("phase") or "Unknown"
    return "Terminating" if pod["metadata"].get("deletionTimestamp") else str(word)


def _reasons(pod: JsonObject) -> Iterator[str]:
    for container in reversed(list(_statuses(pod))):
        state = container.get("state") or {}
        for kind in ("waiting", "terminated"):
            if reason := (state.get(kind) or {}).get("reason"):
                yield reason


def _statuses(pod: JsonObject) -> Iterator[Mapping[str, Any]]:
    yield from (pod.get("status") or {}).get("containerStatuses") or ()
