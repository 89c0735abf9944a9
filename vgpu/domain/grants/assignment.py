"""The assignment: which container has which share of which card, as the annotation on the pod says.

    vgpu.io/assignment: {"v":1,"containers":{"main":[{"gpu":"GPU-...","mem":8192,"cores":30}]}}

`mem` is MiB on that card, `cores` percent of the card's time (absent: no time was asked for), `whole` is true where the
card is held whole. Unknown keys are refused: a format with other keys has a higher `v`.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeGuard

from vgpu.domain import quantity
from vgpu.domain.asks.request import ContainerRequest, PodRequest
from vgpu.domain.errors import MalformedAssignment
from vgpu.domain.identifiers import CardUuid, ContainerName
from vgpu.domain.quantity import FULL_CORES

VERSION: Final = 1
MAX_BYTES: Final = 1 << 18  # Kubernetes' own limit for all annotations of an object
_FIELDS: Final = {"v", "containers"}
_KEYS: Final = {"gpu", "mem", "cores", "whole"}
_parse: Final = json.JSONDecoder().decode


@dataclass(frozen=True, slots=True)
class Grant:
    """What a container was granted on one card.

    Attributes:
        gpu: the card's UUID.
        memory_mib: MiB on the card; all of the card's memory where `whole`.
        cores: percent of the card's time; None where none was asked for.
        whole: no other container may use the card.
    """

    gpu: CardUuid
    memory_mib: int
    cores: int | None = None
    whole: bool = False


@dataclass(frozen=True, slots=True)
class Assignment:
    """What each GPU container of a pod was granted, by container name."""

    containers: Mapping[ContainerName, tuple[Grant, ...]]

    def gpus(self) -> frozenset[CardUuid]:
        """Return the UUIDs of all cards in the assignment."""
        return frozenset(grant.gpu for grants in self.containers.values() for grant in grants)

    def answers(self, request: PodRequest) -> bool:
        """Whether the assignment grants exactly what the pod asks for."""
        asked = {container.name: container for container in request.containers}
        if asked.keys() != self.containers.keys():
            return False
        return all(map(_grants_answer, map(self.containers.__getitem__, asked), asked.values()))


def encode(assignment: Assignment) -> str:
    """Write the annotation's value: compact JSON."""
    containers = {name: [_grant_json(grant) for grant in grants] for name, grants in assignment.containers.items()}
    return json.dumps({"v": VERSION, "containers": containers}, separators=(",", ":"))


def decode(text: str) -> Assignment:
    """Read the annotation's value.

    Raises:
        MalformedAssignment: it is not what `encode` writes; users can write annotations.
    """
    if len(text) > MAX_BYTES:
        raise MalformedAssignment("longer than annotations may be")
    try:
        value = _parse(text)
    except (ValueError, RecursionError) as error:
        raise MalformedAssignment(f"not JSON: {error}") from None
    if not isinstance(value, dict) or value.keys() != _FIELDS:
        raise MalformedAssignment("must be an object with v and containers")
    if value["v"] is True or value["v"] != VERSION:
        raise MalformedAssignment(f"version {value['v']!r}; this program reads {VERSION}")
    if not isinstance(value["containers"], dict):
        raise MalformedAssignment("containers must be an object")
    return Assignment({name: _grants(name, grants) for name, grants in value["containers"].items()})


def _grants_answer(grants: tuple[Grant, ...], container: ContainerRequest) -> bool:
    if len({grant.gpu for grant in grants}) != container.gpus or len(grants) != container.gpus:
        return False
    if container.whole:
        return all(grant.whole for grant in grants)
    asked = (container.memory_mib, container.cores, False)
    return {(grant.memory_mib, grant.cores, grant.whole) for grant in grants} == {asked}


def _grant_json(grant: Grant) -> dict[str, str | int | bool]:
    value: dict[str, str | int | bool] = {"gpu": grant.gpu, "mem": grant.memory_mib}
    if grant.cores is not None:
        value["cores"] = grant.cores
    if grant.whole:
        value["whole"] = True
    return value


def _grants(container: ContainerName, value: object) -> tuple[Grant, ...]:
    if not isinstance(value, list):
        raise MalformedAssignment(f"containers.{container} must be a list")
    return tuple([_grant(container, number, grant) for number, grant in enumerate(value)])


def _grant(container: ContainerName, number: int, value: object) -> Grant:
    if not isinstance(value, dict) or not value.keys() <= _KEYS or not isinstance(value.get("gpu"), str):
        raise _malformed(container, number, " must be an object with gpu, mem and at most cores and whole")
    memory, cores, whole = value.get("mem"), value.get("cores"), value.get("whole", False)
    if not isinstance(whole, bool):
        raise _malformed(container, number, ".whole must be true or false")
    if not _is_whole_number(memory, quantity.MAX_MIB):
        raise _malformed(container, number, f".mem must be a whole number from 1 to {quantity.MAX_MIB}")
    if "cores" not in value:
        return Grant(value["gpu"], memory, None, whole)
    if not _is_whole_number(cores, FULL_CORES):
        raise _malformed(container, number, f".cores must be a whole number from 1 to {FULL_CORES}")
    return Grant(value["gpu"], memory, cores, whole)


def _is_whole_number(value: object, high: int) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= high


def _malformed(container: ContainerName, number: int, why: str) -> MalformedAssignment:
    return MalformedAssignment(f"containers.{container}[{number}]{why}")
