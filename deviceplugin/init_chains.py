"""Chains of allocations: device IDs that the kubelet hands on from an init container to the next container of the pod.

An app container whose init container held as many devices gets the same IDs, by an Allocate that no
GetPreferredAllocation precedes. So one set of IDs may belong to several containers of a pod, one after the other.
"""

from collections.abc import Sequence

from vgpu.node.allocations import Allocation
from vgpu.node.pods import BoundPod, DeviceRequest
from vgpu.request import ContainerKind

Chain = tuple[Allocation, ...]


def chain_of(pod: BoundPod, chains: Sequence[Chain]) -> Chain:
    """The pod's own chain; else the newest, whose holder had been guessed wrong."""
    own = (chain for chain in chains if any(each.holder and each.holder.uid == pod.uid for each in chain))
    unproven = (chain for chain in chains if not any(each.is_proven for each in chain))
    return next(own, None) or next(unproven, None) or chains[0]


def members(pod: BoundPod, chain: Sequence[Allocation], listed: str | None) -> list[str]:
    """Name the containers that a chain's allocations of the same IDs are for, in order.

    Only the last can be an app container or a sidecar, and then pod-resources lists it (`listed`); those before it are
    init containers. Where nothing is listed all are, by name as remembered if the pod was guessed right.
    """
    resource, amount = chain[-1].resource, len(chain[-1].ids)
    inits = _inits_before(pod, resource, listed)
    if listed is not None:
        earlier = len(chain) - 1
        return [*inits[len(inits) - earlier :], listed] if earlier <= len(inits) else [listed] * len(chain)
    if all(each.holder is not None and each.holder.uid == pod.uid for each in chain):
        return [each.holder.container for each in chain if each.holder]
    fitting = [want.container for want in pod.device_requests if want.container in inits and want.amount == amount]
    return (fitting + [""] * len(chain))[: len(chain)]


def _inits_before(pod: BoundPod, resource: str, container: str | None) -> list[str]:
    """Init containers before one, or all."""
    before: list[DeviceRequest] = []
    for want in pod.device_requests:
        if want.container == container:
            break
        before.append(want)
    return [want.container for want in before if want.resource == resource and want.kind is ContainerKind.INIT]
