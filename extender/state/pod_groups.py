"""PodGroups of coscheduling and of Kubernetes: how many pods start together.

Sources: https://github.com/kubernetes-sigs/scheduler-plugins/blob/master/apis/scheduling/v1alpha1/types.go, and
`PodGroupSpec` of k8s.io/api/scheduling/v1alpha2.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

import msgspec

from extender.state.gang_members import GangKey
from vgpu.domain.asks.gang import MAX_SIZE, GangSource
from vgpu.domain.identifiers import Namespace
from vgpu.domain.json_types import Json

MAX_TIMEOUT_S: Final = 3600  # the longest --gang-deadline-s


@dataclass(frozen=True, slots=True)
class PodGroup:
    """A PodGroup.

    Attributes:
        namespace: of the PodGroup and its pods.
        name: of the PodGroup.
        size: how many pods start together; None where the PodGroup cannot be used.
        problem: why it cannot be used.
        timeout_s: how long its pods wait for each other, at most `MAX_TIMEOUT_S`; None: the extender's setting counts.
    """

    namespace: Namespace
    name: str
    size: int | None
    problem: str = ""
    timeout_s: int | None = None


class PodGroups:
    """The PodGroups of one source: the handler of their watch. `changed` takes the key of each gang that changes."""

    def __init__(self, source: GangSource, changed: Callable[[GangKey], None]) -> None:
        self._source = source
        self._changed = changed
        self._groups: dict[GangKey, PodGroup] = {}

    def get(self, key: GangKey) -> PodGroup | None:
        """Return a gang's PodGroup, None where there is none."""
        return self._groups.get(key)

    def replace(self, objects: list[PodGroup], version: str) -> None:  # noqa: ARG002 - the reflector's protocol
        """Take a full list."""
        for key in self._groups.keys() - {self._key(obj) for obj in objects}:
            self._remove(key)
        for obj in objects:
            self.upsert(obj)

    def upsert(self, obj: PodGroup) -> None:
        """Take a PodGroup that is new or changed."""
        key = self._key(obj)
        if self._groups.get(key) != obj:
            self._groups[key] = obj
            self._changed(key)

    def delete(self, obj: PodGroup) -> None:
        """Take a PodGroup's deletion."""
        self._remove(self._key(obj))

    def _remove(self, key: GangKey) -> None:
        if self._groups.pop(key, None) is not None:
            self._changed(key)

    def _key(self, group: PodGroup) -> GangKey:
        return group.namespace, self._source, group.name


def of_coscheduling(raw: bytes) -> PodGroup:
    """Read a PodGroup of scheduling.x-k8s.io."""
    obj = msgspec.json.decode(raw)
    spec = obj.get("spec") or {}
    found = _group(obj, spec.get("minMember"), "spec.minMember")
    return replace(found, timeout_s=_timeout_s(spec.get("scheduleTimeoutSeconds")))


def _timeout_s(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int) or value <= 0:
        return None
    return min(value, MAX_TIMEOUT_S)


def of_kubernetes(raw: bytes) -> PodGroup:
    """Read a PodGroup of scheduling.k8s.io; one without a gang policy has pods that start one by one."""
    obj = msgspec.json.decode(raw)
    policy = (obj.get("spec") or {}).get("schedulingPolicy") or {}
    gang = policy.get("gang")
    return _group(obj, 1 if gang is None else gang.get("minCount"), _MIN_COUNT)


_MIN_COUNT: Final = "spec.schedulingPolicy.gang.minCount"


def _group(obj: Json, size: object, field: str) -> PodGroup:
    namespace, name = Namespace(str(obj["metadata"]["namespace"])), str(obj["metadata"]["name"])
    if isinstance(size, int) and not isinstance(size, bool) and 1 <= size <= MAX_SIZE:
        return PodGroup(namespace, name, size)
    why = f"{field} of PodGroup {namespace}/{name} must be a whole number from 1 to {MAX_SIZE}"
    return PodGroup(namespace, name, None, why)
