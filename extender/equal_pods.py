"""What a pod asks for, read once for all pods that ask for equal things.

The pods of one controller differ in their names, volumes and times, and not in what they ask for: that is in the
containers' amounts, in annotations and in what names a gang, which together are the key.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from vgpu import host_request, names, quantity, request
from vgpu.host_request import HostRequest
from vgpu.request import Parsed

MAX_KEYS: Final = 1_024
MAX_LENGTH: Final = 4_096  # characters of a key: users write them, and the keys must not fill this process's memory
MAX_CONTAINERS: Final = 16  # of a pod that has a key: a pod may have 6,000

Json = Mapping[str, Any]
_Key: TypeAlias = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Asked:
    """What a pod asks for; the pods with equal requests have one object.

    Attributes:
        parsed: what it asks of GPUs, with the problems.
        admitted: the amounts in the containers' limits, by container name and kubelet resource.
        host: what it requests of its node's CPU and memory.
    """

    parsed: Parsed
    admitted: Mapping[tuple[str, str], int]
    host: HostRequest


_known: dict[_Key, Asked] = {}


def read(pod: Json) -> Asked:
    """Read what a pod's decoded JSON asks for."""
    key = _key(pod)
    if key is None:
        return asked(pod)
    found = _known.get(key)
    if found is None:
        found = asked(pod)
        if len(repr(key)) <= MAX_LENGTH:
            _keep(key, found)
    return found


def asked(pod: Json) -> Asked:
    """Read a pod without looking at others."""
    return Asked(request.parse(pod), dict(_admitted(pod)), host_request.of_pod(pod.get("spec") or {}))


def _keep(key: _Key, found: Asked) -> None:
    if len(_known) >= MAX_KEYS:
        del _known[next(iter(_known))]
    _known[key] = found


def _key(pod: Json) -> _Key | None:
    """Return all that `asked` looks at; None for a pod of more than `MAX_CONTAINERS`."""
    metadata, spec = pod.get("metadata") or {}, pod.get("spec") or {}
    containers, inits = spec.get("containers") or (), spec.get("initContainers") or ()
    if len(containers) + len(inits) > MAX_CONTAINERS:
        return None
    annotations, labels = metadata.get("annotations") or {}, metadata.get("labels") or {}
    return (
        tuple(map(_container, containers)),
        tuple(map(_container, inits)),
        _amounts(spec.get("overhead")),
        tuple(map(annotations.get, names.USER_ANNOTATIONS)),
        (spec.get(names.SCHEDULING_GROUP) or {}).get("podGroupName"),
        labels.get(names.POD_GROUP_LABEL),
    )


def _container(container: Json) -> _Key:
    resources = container.get("resources") or {}
    limits, requests = _amounts(resources.get("limits")), _amounts(resources.get("requests"))
    return str(container.get("name")), container.get("restartPolicy") == "Always", limits, requests


def _amounts(amounts: Json | None) -> _Key:
    return tuple(amounts.items()) if amounts else ()


def _admitted(pod: Json) -> Iterator[tuple[tuple[str, str], int]]:
    for _, _, container in request.containers_of(pod):
        amounts = request.amounts(container)
        for name in names.KUBELET_RESOURCES:
            if name in amounts:
                yield (str(container.get("name")), name), quantity.whole_number(amounts[name]) or 0
