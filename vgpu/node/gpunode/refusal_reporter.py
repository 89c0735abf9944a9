"""Reports refusals: in the status of the node's GPUNode, where the extender finds them.

The plugin's account can neither write Events nor evict pods: the extender posts the Event and evicts the pod, after it
has checked that the pod is bound to this node. The kubelet repeats a refused start every few seconds; each refusal is
reported once, until its pod is gone. Where there are more than a GPUNode takes, namespaces have turns.
"""

import logging
from collections.abc import Callable
from typing import Final, NamedTuple

from vgpu.domain.identifiers import Namespace, PodUid
from vgpu.domain.json_types import JsonObject
from vgpu.node.containers.bound_pod import BoundPod
from vgpu.node.containers.refusal import ContainerRefusal
from vgpu.node.gpunode.pod_report import pod_report
from vgpu.pacing import turns

MAX_REPORTED: Final = 32  # the GPUNode allows 64 more: process_watch, card_reports, kernel_reports, space_reports
_MAX_MESSAGE: Final = 900

log = logging.getLogger(__name__)


class _Reported(NamedTuple):
    namespace: Namespace
    report: JsonObject


class RefusalReporter:
    """The refusals of this node's pods. `is_known` says whether the watch has a pod with a UID."""

    def __init__(self, is_known: Callable[[PodUid], bool]) -> None:
        """`on_change` may be set: it is called after each new refusal."""
        self.on_change: Callable[[], None] = lambda: None
        self._is_known = is_known
        self._known: dict[tuple[PodUid, str], _Reported] = {}

    def refused(self, pod: BoundPod, refusal: ContainerRefusal) -> None:
        """Report a refusal, and ask for an eviction where only another pod helps and a controller would create it."""
        key = (pod.uid, str(refusal.reason))
        if key in self._known:
            return
        log.warning("pod %s/%s may not start: %s", pod.namespace, pod.name, refusal)
        evict = refusal.is_permanent and pod.has_controller
        report = pod_report(pod, str(refusal.reason), str(refusal)[:_MAX_MESSAGE], evict=evict)
        self._known[key] = _Reported(pod.namespace, report)
        self._forget_gone()
        self.on_change()

    def refusals(self) -> list[JsonObject]:
        """Return refusals of the pods that exist, oldest first: at most 32, of each namespace its oldest ones."""
        self._forget_gone()
        shown = turns.taken(self._known.values(), lambda reported: reported.namespace, MAX_REPORTED)
        return [reported.report for reported in shown]

    def _forget_gone(self) -> None:
        """Forget the pods that are gone, so that no more is known than of the pods of this node."""
        self._known = {key: reported for key, reported in self._known.items() if self._is_known(key[0])}
