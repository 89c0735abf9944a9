"""What a pod asks for, read once for all pods that ask for equal things, and what it was granted.

The pods of one controller differ in their names, volumes and times, and not in what they ask for: that is in the
containers' amounts, in annotations and in what names a gang, which together are the key. An assignment is the same text
in every version of a pod, and in equal pods on one card.
"""

import itertools
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeAlias, TypeVar

from extender.index import ask
from extender.index.ask import ContainerAsk
from vgpu.domain import names, quantity
from vgpu.domain.asks import host_request, request
from vgpu.domain.asks.host_request import HostRequest
from vgpu.domain.asks.request import Parsed
from vgpu.domain.grants import assignment_trust
from vgpu.domain.grants.assignment import Assignment
from vgpu.domain.grants.assignment_trust import Distrust
from vgpu.domain.json_types import Json

MAX_KEYS: Final = 1_024
MAX_LENGTH: Final = 4_096  # characters of a key: users write them, and the keys must not fill this process's memory
MAX_CONTAINERS: Final = 16  # of a pod that has a key: a pod may have 6,000
MAX_ASSIGNMENTS: Final = 1 << 16  # 5,000 nodes have 40,000 cards
MAX_ASSIGNMENT: Final = 512  # characters of one that is kept

_ANNOTATIONS: Final = frozenset(names.USER_ANNOTATIONS)

_Key: TypeAlias = tuple[Any, ...]
K = TypeVar("K")
V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class SharedRequest:
    """What a pod asks for; the pods with equal requests have one object.

    Attributes:
        parsed: what it asks of GPUs, with the problems.
        admitted: the amounts in the containers' limits, by container name and kubelet resource.
        host: what it requests of its node's CPU and memory.
        number: of the request, never given twice by one reader; None for a pod whose request is not kept.
    """

    parsed: Parsed
    admitted: Mapping[tuple[str, str], int]
    host: HostRequest
    number: int | None = field(default=None, compare=False)
    _asks: dict[int, tuple[ContainerAsk, ...]] = field(default_factory=dict, init=False, compare=False, repr=False)

    def asks(self, slice_mib: int) -> tuple[ContainerAsk, ...]:
        """Return what each container that chooses cards asks of a card, computed once; nothing for an invalid pod."""
        found = self._asks.get(slice_mib)
        if found is None:
            found = self._asks[slice_mib] = ask.of_pod(self.parsed.request, slice_mib) if self.parsed.request else ()
        return found


class EqualPods:
    """Keeps what was read of the last kinds of pods."""

    def __init__(self, max_requests: int = MAX_KEYS, max_assignments: int = MAX_ASSIGNMENTS) -> None:
        self._max_requests = max_requests
        self._max_assignments = max_assignments
        self._numbers = itertools.count()
        self._requests: OrderedDict[_Key, SharedRequest] = OrderedDict()
        self._assignments: OrderedDict[tuple[int, str], Assignment | Distrust] = OrderedDict()

    def read(self, pod: Json) -> SharedRequest:
        """Read what a pod's decoded JSON asks for."""
        key = _key(pod)
        if key is None:
            return asked(pod)
        found = self._requests.get(key)
        if found is None:
            found = asked(pod)
            if len(repr(key)) <= MAX_LENGTH:
                found = replace(found, number=next(self._numbers))
                _keep(self._requests, self._max_requests, key, found)
        return found

    def assignment(self, asked: SharedRequest, annotation: str) -> Assignment | Distrust:
        """Return the assignment of a pod that asks for this, where it can be trusted; `annotation` is empty for none.

        It is kept by the request's number, so that no request is kept for it: a pod may have 6,000 containers.
        """
        if not annotation or asked.number is None or len(annotation) > MAX_ASSIGNMENT:
            return assignment_trust.judge(asked.parsed, annotation)
        key = asked.number, annotation
        found = self._assignments.get(key)
        if found is None:
            found = assignment_trust.judge(asked.parsed, annotation)
            _keep(self._assignments, self._max_assignments, key, found)
        return found


def asked(pod: Json) -> SharedRequest:
    """Read a pod without looking at others."""
    return SharedRequest(request.parse(pod), dict(_admitted(pod)), host_request.of_pod(pod.get("spec") or {}))


def _keep(kept: OrderedDict[K, V], most: int, key: K, found: V) -> None:
    """Keep a value, and forget the oldest of more than `most`. A dict would look for its first key for long."""
    if len(kept) >= most:
        kept.popitem(last=False)
    kept[key] = found


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
        tuple([annotation for annotation in annotations.items() if annotation[0] in _ANNOTATIONS]),
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
