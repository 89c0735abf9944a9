"""Cards, pods and allocations for the tests: small, so that random examples often reach the limits."""

import json
from dataclasses import replace
from typing import Any

from tests import strategies
from vgpu.adapters.nvml.records import Gpu
from vgpu.domain import names
from vgpu.domain.asks import request
from vgpu.domain.cards.device import Card
from vgpu.domain.grants import assignment
from vgpu.domain.grants.assignment import Assignment, Grant
from vgpu.domain.identifiers import CardUuid, ContainerName, NodeName
from vgpu.node.cards import device_ids
from vgpu.node.containers import bound_pod
from vgpu.node.containers.allocations import Allocation, Holder
from vgpu.node.containers.bound_pod import BoundPod

SLICE_MIB = strategies.SLICE_MIB
NODE = NodeName("n1")


def uuid(number: int) -> CardUuid:
    return CardUuid(f"GPU-{number:08x}-0000-4000-8000-000000000000")


def gpu(number: int, memory_mib: int = 2048, *, mig: bool = False) -> Gpu:
    """A card of eight slices."""
    return Gpu(Card(uuid(number), number, "NVIDIA H100", memory_mib), number, mig_enabled=mig)


def slices(number: int, *indexes: int) -> frozenset[str]:
    return frozenset(device_ids.slice_id(uuid(number), index) for index in indexes)


def manifest(
    name: str,
    *containers: dict[str, Any],
    init: tuple[dict[str, Any], ...] = (),
    gpus: dict[str, tuple[int, ...]] | int | None = 0,
    annotations: dict[str, str] | None = None,
    uid: str = "",
    owner: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """A pod after admission and binding; `gpus`: the cards' numbers, one for all containers or several for each."""
    made = strategies.pod(*(containers or (strategies.container(gpu_mem=1024),)), init=init, uid=uid or f"uid-{name}")
    made["metadata"] |= {"name": name, "annotations": dict(annotations or {})}
    made["spec"]["nodeName"] = NODE
    if owner is not None:
        made["metadata"]["ownerReferences"] = [owner]
    strategies.admit(made)
    pod_request = request.parse(made).request
    assert pod_request is not None
    if gpus is not None:
        numbers = gpus if isinstance(gpus, dict) else {c.name: (gpus,) for c in pod_request.containers}
        made["metadata"]["annotations"][names.ASSIGNMENT] = assignment.encode(
            Assignment({c.name: tuple(_grant(c, number) for number in numbers[c.name]) for c in pod_request.containers})
        )
    return made


def bound(name: str, *containers: dict[str, Any], order: int = 0, **more: Any) -> BoundPod:
    return replace(bound_pod.decode(json.dumps(manifest(name, *containers, **more)).encode()), order=order)


def plain(name: str) -> BoundPod:
    """A pod without a share."""
    made = strategies.pod({"name": "main"}, uid=f"uid-{name}")
    made["metadata"]["name"] = name
    return bound_pod.decode(json.dumps(made).encode())


def sidecar(name: str, **amounts: int) -> dict[str, Any]:
    return strategies.container(name, **amounts) | {"restartPolicy": "Always"}


def allocation(
    ids: frozenset[str], pod: BoundPod | None = None, container: str = "main", sequence: int = 1, **more: Any
) -> Allocation:
    fields: dict[str, Any] = {
        "id": f"a{sequence}",
        "resource": names.SLICE,
        "chain": f"c{sequence}",
        "created": 1000.0,
        "library": "l",
        "holder": Holder.of(pod, ContainerName(container)) if pod else None,
    }
    return Allocation(ids=ids, sequence=sequence, **(fields | more))


def mount_of(allocation_id: str) -> str:
    """A line of /proc/PID/mountinfo: the limits file of an allocation, in a container."""
    return f"812 790 8:1 /var/lib/vgpu/allocations/{allocation_id}/limits /run/vgpu/limits ro - ext4 /dev/sda1 rw\n"


def _grant(container: request.ContainerRequest, number: int) -> Grant:
    return Grant(uuid(number), container.memory_mib or 2048, container.cores, container.whole)
