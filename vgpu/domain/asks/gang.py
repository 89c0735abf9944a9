"""Which gang a pod is a member of: pods that start together or not at all.

A pod names its gang in one of three ways: by our annotations, by the label of coscheduling, or by newer Kubernetes'
`spec.schedulingGroup`. Our annotations say the size; for the others a PodGroup object of the pod's namespace does.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from vgpu.domain import names, object_names
from vgpu.domain.json_types import Json
from vgpu.domain.problem import Problem

MAX_SIZE: Final = 256  # members
_SIZE: Final = re.compile(r"[1-9][0-9]{0,2}", re.ASCII)


class GangSource(StrEnum):
    """What names a gang."""

    ANNOTATION = "annotation"
    COSCHEDULING = "coscheduling"
    KUBERNETES = "kubernetes"


FIELDS: Final[Mapping[GangSource, str]] = {
    GangSource.ANNOTATION: f"metadata.annotations[{names.GANG}]",
    GangSource.COSCHEDULING: f"metadata.labels[{names.POD_GROUP_LABEL}]",
    GangSource.KUBERNETES: f"spec.{names.SCHEDULING_GROUP}.podGroupName",
}
_SIZE_FIELD: Final = f"metadata.annotations[{names.GANG_SIZE}]"


@dataclass(frozen=True, slots=True)
class Gang:
    """A pod's membership.

    Attributes:
        name: of the gang, in the pod's namespace; gangs of different sources are different gangs.
        source: what names the gang.
        size: number of members that start together; None where a PodGroup says it.
    """

    name: str
    source: GangSource
    size: int | None = None


def parse(pod: Json) -> tuple[Gang | None, list[Problem]]:
    """Read a pod's membership, None where it has none or where it cannot be read; every problem names its annotation.

    Of several sources our annotations count, then the pod's spec, then its label. Labels make no problem: users may
    change those of a bound pod, and a pod with a problem is in no account.
    """
    named = dict(_named(pod))
    if GangSource.ANNOTATION in named and not object_names.is_subdomain(named[GangSource.ANNOTATION]):
        why = "must be a DNS name of at most 253 characters, such as train-7"
        return None, [Problem(FIELDS[GangSource.ANNOTATION], named[GangSource.ANNOTATION], why)]
    size, problems = _size(pod, has_name=GangSource.ANNOTATION in named)
    found = [Gang(name, source, size) for source, name in named.items() if not problems]
    return found[0] if found else None, problems


def conflicts(pod: Json) -> list[Problem]:
    """Return the problems of a new pod that names two gangs, has affinity beside one, or rules for cards of none."""
    fields = [FIELDS[source] for source, _ in _named(pod)]
    annotations = (pod.get("metadata") or {}).get("annotations") or {}
    found = [
        Problem(
            f"metadata.annotations[{name}]", "", f"cannot be combined with {fields[0]}: gangs are planned without it"
        )
        for name in (names.GPU_AFFINITY, names.GPU_ANTI_AFFINITY)
        if fields and name in annotations
    ]
    if names.GANG_CARDS in annotations and not fields:
        field = f"metadata.annotations[{names.GANG_CARDS}]"
        found.append(Problem(field, str(annotations[names.GANG_CARDS]), f"needs a gang, such as {names.GANG} names it"))
    if len(fields) > 1:
        found.append(Problem(fields[0], "", f"names a second gang beside {fields[1]}; leave one of them out"))
    return found


def _named(pod: Json) -> Iterator[tuple[GangSource, str]]:
    metadata, spec = pod.get("metadata") or {}, pod.get("spec") or {}
    name = (metadata.get("annotations") or {}).get(names.GANG)
    if name is not None:
        yield GangSource.ANNOTATION, str(name)
    group = (spec.get(names.SCHEDULING_GROUP) or {}).get("podGroupName")
    if group:
        yield GangSource.KUBERNETES, str(group)
    label = (metadata.get("labels") or {}).get(names.POD_GROUP_LABEL)
    if label:
        yield GangSource.COSCHEDULING, str(label)


def _size(pod: Json, *, has_name: bool) -> tuple[int | None, list[Problem]]:
    value = ((pod.get("metadata") or {}).get("annotations") or {}).get(names.GANG_SIZE)
    if value is None:
        why = f"is missing: how many pods are in the gang of {names.GANG}, 1 to {MAX_SIZE}"
        return None, [Problem(_SIZE_FIELD, "", why)] if has_name else []
    if not has_name:
        return None, [Problem(_SIZE_FIELD, str(value), f"needs {names.GANG} too, the name of the gang")]
    if not _SIZE.fullmatch(str(value)) or int(value) > MAX_SIZE:
        return None, [Problem(_SIZE_FIELD, str(value), f"must be a plain whole number from 1 to {MAX_SIZE}")]
    return int(value), []
