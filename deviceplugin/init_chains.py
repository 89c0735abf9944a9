"""Chains of allocations: device IDs that the kubelet hands on from an init container to the next container of the pod.

An app container whose init container held as many devices gets the same IDs, by an Allocate that no
GetPreferredAllocation precedes. So one set of IDs may belong to several containers of a pod, one after the other.
"""

from collections.abc import Sequence

from vgpu.domain.asks.request import ContainerKind
from vgpu.domain.identifiers import NO_CONTAINER, ContainerName
from vgpu.node.containers.allocations import Allocation
from vgpu.node.containers.bound_pod import BoundPod, DeviceRequest

Chain = tuple[Allocation, ...]


def chain_of(pod: BoundPod, chains: Sequence[Chain]) -> Chain:
    """Return the pod's own chain; else the newest chain without a proven holder: its holder was guessed wrong."""
    own = (
        chain for chain in chains if any(allocation.holder and allocation.holder.uid == pod.uid for allocation in chain)
    )
    unproven = (chain for chain in chains if not any(allocation.is_proven for allocation in chain))
    return next(own, None) or next(unproven, None) or chains[0]


def members(pod: BoundPod, chain: Sequence[Allocation], listed: ContainerName | None) -> list[ContainerName]:
    """Return the names of the containers that a chain's allocations are for, in order.

    Only the last can be an app container or a sidecar, and then pod-resources lists it (`listed`); the others are init
    containers. Where no container is listed, all are init containers: those on record, if the record names this pod.
    """
    resource, amount = chain[-1].resource, len(chain[-1].ids)
    inits = _inits_before(pod, resource, listed)
    if listed is not None:
        earlier = len(chain) - 1
        return [*inits[len(inits) - earlier :], listed] if earlier <= len(inits) else [listed] * len(chain)
    if all(allocation.holder is not None and allocation.holder.uid == pod.uid for allocation in chain):
        return [allocation.holder.container for allocation in chain if allocation.holder]
    fitting = [
        device_request.container
        for device_request in pod.device_requests
        if device_request.container in inits and device_request.amount == amount
    ]
    return (fitting + [NO_CONTAINER] * len(chain))[: len(chain)]


def _inits_before(pod: BoundPod, resource: str, container: ContainerName | None) -> list[ContainerName]:
    """Return the init containers before a container, or all where that is None."""
    before: list[DeviceRequest] = []
    for device_request in pod.device_requests:
        if device_request.container == container:
            break
        before.append(device_request)
    return [
        allocation.container
        for allocation in before
        if allocation.resource == resource and allocation.kind is ContainerKind.INIT
    ]
