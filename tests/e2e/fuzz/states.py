"""Whether every pod that the API server accepted runs, has ended, or waits with a reason."""

from collections.abc import Iterable, Iterator
from typing import Final

from tests.e2e.monitor.findings import Finding, without_numbers
from tests.e2e.monitor.snapshot import Document
from vgpu.domain import names
from vgpu.domain.asks import aliases

_SHARES: Final = {*names.USER_RESOURCES, *aliases.MARKER_NAMES}
_SCHEDULERS: Final = {"default-scheduler", names.SCHEDULER}


def wrong(pods: Iterable[Document]) -> Iterator[Finding]:
    """Yield what is wrong with pods that have had time to start."""
    for pod in pods:
        name, status = pod["metadata"]["name"], pod["status"]
        if is_unmutated(pod):
            yield Finding("a pod that asks for a share was admitted without slices or cards", name, name)
        if waits_silently(pod):
            yield Finding("a pod waits without a reason", f"{name}: {status}", name)
        if status.get("reason") == "UnexpectedAdmissionError":
            kind = f"the kubelet failed a pod: {without_numbers(status.get('message', ''))}"
            yield Finding(kind, f"{name}: {status.get('message')}", name)


def is_unmutated(pod: Document) -> bool:
    """Whether a pod asks for a share by any of the names, and no container has slices or cards."""
    asked: set[str] = set()
    for container in [*pod["spec"]["containers"], *pod["spec"].get("initContainers", [])]:
        for kind in ("limits", "requests"):
            asked |= (container.get("resources", {}).get(kind) or {}).keys()
    return bool(asked & _SHARES) and not asked & set(names.KUBELET_RESOURCES)


def waits_silently(pod: Document) -> bool:
    """Whether a pod is pending, and neither a condition nor a container's state says why."""
    spec, status = pod["spec"], pod["status"]
    if status.get("phase") != "Pending" or "deletionTimestamp" in pod["metadata"]:
        return False
    if spec.get("nodeName"):
        return False  # the kubelet is starting the pod, or says why not in the state of its containers
    if spec.get("schedulerName") not in _SCHEDULERS:
        return False
    conditions = [condition for condition in status.get("conditions", []) if condition["type"] == "PodScheduled"]
    return not any(condition.get("message") for condition in conditions)
