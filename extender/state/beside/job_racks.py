"""On which nodes the pods of a job are, for pods with a policy for racks (ADR 82).

A job is the gang that a pod names, or else what created the pod: the controller's kind and name, and the namespace.
"""

from collections.abc import Iterable

from extender.state import gang_members
from extender.state.objects import WatchedPod
from vgpu.domain.identifiers import NodeName, PodUid

JobKey = tuple[object, ...]


def key_of(pod: WatchedPod) -> JobKey | None:
    """Return the key of a pod's job; None where the pod has no policy for racks, or no job."""
    request = pod.parsed.request
    if request is None or request.options.rack_policy is None:
        return None
    owner = (pod.namespace, *pod.lifecycle.owner) if any(pod.lifecycle.owner) else None
    return gang_members.key_of(pod) or owner


class JobPods:
    """The bound pods of each job."""

    def __init__(self) -> None:
        self._nodes: dict[JobKey, dict[PodUid, NodeName]] = {}
        self._keys: dict[PodUid, JobKey] = {}

    def put(self, pod: WatchedPod) -> None:
        """Take a pod that is new or changed."""
        if pod.uid in self._keys:
            self.remove(pod.uid)
        key = key_of(pod)
        if key is not None and pod.node and not pod.is_terminal:
            self._keys[pod.uid] = key
            self._nodes.setdefault(key, {})[pod.uid] = pod.node

    def remove(self, uid: PodUid) -> None:
        """Take a pod's deletion."""
        key = self._keys.pop(uid, None)
        if key is not None:
            del self._nodes[key][uid]
            if not self._nodes[key]:
                del self._nodes[key]

    def nodes(self, pod: WatchedPod, binding: Iterable[tuple[WatchedPod, NodeName]]) -> list[NodeName]:
        """Return the nodes of the other pods of a pod's job; `binding` are pods that are being bound, with nodes."""
        key = key_of(pod)
        if key is None:
            return []
        found = {other.uid: node for other, node in binding if key_of(other) == key} | self._nodes.get(key, {})
        return [node for uid, node in found.items() if uid != pod.uid]
