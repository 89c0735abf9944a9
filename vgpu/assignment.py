"""The assignment: which container has which share of which card, as the annotation on the pod says.

    vgpu.io/assignment: {"v":1,"containers":{"main":[{"gpu":"GPU-...","mem":8192,"cores":30}]}}

`mem` is MiB on that card, `cores` percent of the card's time (absent: no time was asked for), `whole` is true where the
card is held whole. Unknown keys are refused: a format with other keys has a higher `v`.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from vgpu import quantity
from vgpu.errors import MalformedAssignment
from vgpu.quantity import FULL_CORES
from vgpu.request import ContainerRequest, PodRequest

VERSION: Final = 1
MAX_BYTES: Final = 1 << 18  # Kubernetes' own limit for all annotations of an object
_KEYS: Final = {"gpu", "mem", "cores", "whole"}


@dataclass(frozen=True, slots=True)
class Grant:
    """What a container was granted on one card.

    Attributes:
        gpu: the card's UUID.
        memory_mib: MiB on the card; all of the card's memory where `whole`.
        cores: percent of the card's time; None where none was asked for.
        whole: no other container may use the card.
    """

    gpu: str
    memory_mib: int
    cores: int | None = None
    whole: bool = False


@dataclass(frozen=True, slots=True)
class Assignment:
    """What each GPU container of a pod was granted, by container name."""

    containers: Mapping[str, tuple[Grant, ...]]

    def gpus(self) -> frozenset[str]:
        """Return the UUIDs of all cards in the assignment."""
        return frozenset(grant.gpu for grants in self.containers.values() for grant in grants)

    def answers(self, request: PodRequest) -> bool:
        """Whether the assignment grants exactly what the pod asks for."""
        asked = {container.name: container for container in request.containers}
        return asked.keys() == self.containers.keys() and all(
            _grants_answer(self.containers[name], container) for name, container in asked.items()
        )


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
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise MalformedAssignment(f"not JSON: {error}") from None
    if not isinstance(value, dict) or value.keys() != {"v", "containers"}:
        raise MalformedAssignment("must be an object with v and containers")
    if value["v"] is True or value["v"] != VERSION:
        raise MalformedAssignment(f"version {value['v']!r}; this program reads {VERSION}")
    if not isinstance(value["containers"], dict):
        raise MalformedAssignment("containers must be an object")
    return Assignment({name: _grants(name, grants) for name, grants in value["containers"].items()})


def _grants_answer(grants: tuple[Grant, ...], container: ContainerRequest) -> bool:
    if len(grants) != container.gpus or len({grant.gpu for grant in grants}) != len(grants):
        return False
    if container.whole:
        return all(grant.whole for grant in grants)
    asked = (container.memory_mib, container.cores, False)
    return all((grant.memory_mib, grant.cores, grant.whole) == asked for grant in grants)


def _grant_json(grant: Grant) -> dict[str, str | int | bool]:
    value: dict[str, str | int | bool] = {"gpu": grant.gpu, "mem": grant.memory_mib}
    if grant.cores is not None:
        value["cores"] = grant.cores
    if grant.whole:
        value["whole"] = True
    return value


def _grants(container: str, value: object) -> tuple[Grant, ...]:
    if not isinstance(value, list):
        raise MalformedAssignment(f"containers.{container} must be a list")
    return tuple(_grant(f"containers.{container}[{n}]", grant) for n, grant in enumerate(value))


def _grant(path: str, value: object) -> Grant:
    if not isinstance(value, dict) or not value.keys() <= _KEYS or not isinstance(value.get("gpu"), str):
        raise MalformedAssignment(f"{path} must be an object with gpu, mem and at most cores and whole")
    if value.get("whole", False) not in (True, False) or not isinstance(value.get("whole", False), bool):
        raise MalformedAssignment(f"{path}.whole must be true or false")
    memory = _integer(f"{path}.mem", value.get("mem"), quantity.MAX_MIB)
    cores = _integer(f"{path}.cores", value["cores"], FULL_CORES) if "cores" in value else None
    return Grant(value["gpu"], memory, cores, value.get("whole", False))


def _integer(path: str, value: object, high: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= high:
        raise MalformedAssignment(f"{path} must be a whole number from 1 to {high}")
    return value
