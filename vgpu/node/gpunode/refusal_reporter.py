"""Reports refusals: in the status of the node's GPUNode, where the extender finds them.

The plugin's account can neither write Events nor evict pods: the extender posts the Event and evicts the pod, after it
has checked that the pod is bound to this node. The kubelet repeats a refused start every few seconds; each refusal is
reported once, until its pod is gone.
"""

import logging
from collections.abc import Callable
from typing import Any, Final

from vgpu.domain.identifiers import PodUid
from vgpu.node.containers.pods import BoundPod
from vgpu.node.containers.refusal import ContainerRefusal
from vgpu.node.gpunode.pod_report import pod_report

MAX_REPORTED: Final = 32  # the schema of the GPUNode allows 48 more, for process_watch and card_reports
_MAX_MESSAGE: Final = 900

log = logging.getLogger(__name__)


class RefusalReporter:
    """The refusals of this node's pods. `is_known` says whether the watch has a pod with a UID."""

    def __init__(self, is_known: Callable[[PodUid], bool]) -> None:
        """`on_change` may be set: it is called after each new refusal."""
        self.on_change: Callable[[], None] = lambda: None
        self._is_known = is_known
        self._reported: dict[tuple[PodUid, str], dict[str, Any]] = {}

    def refused(self, pod: BoundPod, refusal: ContainerRefusal) -> None:
        """Report a refusal, and ask for an eviction where only another pod helps and a controller would create it."""
        key = (pod.uid, str(refusal.reason))
        if key in self._reported:
            return
        log.warning("pod %s/%s may not start: %s", pod.namespace, pod.name, refusal)
        evict = refusal.is_permanent and pod.has_controller
        self._reported[key] = pod_report(pod, str(refusal.reason), str(refusal)[:_MAX_MESSAGE], evict=evict)
        while len(self._reported) > MAX_REPORTED:
            del self._reported[next(iter(self._reported))]
        self.on_change()

    def refusals(self) -> list[dict[str, Any]]:
        """Return the refusals of the pods that exist, oldest first."""
        self._reported = {key: report for key, report in self._reported.items() if self._is_known(key[0])}
        return list(self._reported.values())
