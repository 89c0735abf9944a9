"""Which containers of a node use their shares now: metrics and measured use count these and no others.

PreStartContainer proves an init container and the one after it at once, because the kubelet hands the devices of one on
to the other, and an allocation stays until the pod ends. A card may not have room for both: they never run together.
"""

from collections.abc import Iterable, Mapping

from vgpu.domain.asks.request import ContainerKind
from vgpu.domain.identifiers import ContainerName, PodUid
from vgpu.node.containers.allocations import Allocation
from vgpu.node.containers.bound_pod import BoundPod

ContainerKey = tuple[PodUid, ContainerName]  # UID of the pod, name of the container


def running(proven: Iterable[Allocation], pods: Mapping[PodUid, BoundPod]) -> dict[ContainerKey, Allocation]:
    """Return the allocations of containers that may run now; `pods` are by UID."""
    others = {uid: _not_now(pod) for uid, pod in pods.items()}
    return {
        (holder.uid, holder.container): allocation
        for allocation in proven
        if (holder := allocation.holder) is not None and holder.container not in others.get(holder.uid, ())
    }


def _not_now(pod: BoundPod) -> frozenset[str]:
    """Return the containers that have ended for good, or cannot have begun: those after an init container that runs."""
    found: set[str] = set()
    is_later = False
    for asked in pod.device_requests:  # in the order in which the kubelet starts containers
        is_init = asked.kind is ContainerKind.INIT
        if is_later or (is_init and asked.container in pod.completed):
            found.add(asked.container)
        else:
            is_later = is_init
    return frozenset(found)
