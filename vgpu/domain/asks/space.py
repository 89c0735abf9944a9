"""Groups in space: which containers of a card are to run at the same moment, under one MPS server (ADR 174). Pure."""

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from vgpu.domain import names, object_names
from vgpu.domain.identifiers import NO_NAMESPACE, Namespace
from vgpu.domain.problem import Problem
from vgpu.domain.quantity import FULL_CORES, WHOLE_PERCENT

SPACE: Final = "space"  # the compute policy
MAX_CLIENTS: Final = 48  # processes that one MPS server serves, Volta to Hopper; placement counts containers
SHARED: Final = "shared/"  # before the name of a group of the whole cluster
FINGERPRINT_SIZE: Final = 16  # bytes
NAME_FILE: Final = "space-group"  # beside a member's limits file, which has the fingerprint only; for people

_PERCENT: Final = re.compile(r"[1-9][0-9]{0,2}", re.ASCII)


@dataclass(frozen=True, slots=True, order=True)
class SpaceGroup:
    """A group of containers, on whichever cards they are.

    Attributes:
        namespace: whose group it is; empty for a group of the whole cluster.
        name: a DNS label; empty for the group that a namespace has without naming one.
    """

    namespace: Namespace
    name: str

    @property
    def fingerprint(self) -> bytes:
        """16 bytes that name the group in files: groups that differ have different ones."""
        return hashlib.sha256(f"{self.namespace}/{self.name}".encode()).digest()[:FINGERPRINT_SIZE]

    @property
    def directory(self) -> str:
        """The name of the group's directory: 16 hex digits, because the path of a socket has 107 characters at most."""
        return self.fingerprint.hex()[:16]

    def __str__(self) -> str:
        """Return `NAMESPACE/NAME`, without a name the namespace, and `*/NAME` of a group of the cluster."""
        return f"{self.namespace or '*'}/{self.name}" if self.name else self.namespace


@dataclass(frozen=True, slots=True)
class SpaceWish:
    """What a pod with the policy `space` says, whatever its namespace is.

    Attributes:
        name: the name of the group; empty for the one that a namespace has without naming one.
        is_shared: whether it is a group of the whole cluster.
        sm_percentage: percent of a card's multiprocessors that each container may use at most; None: no cap.
    """

    name: str = ""
    is_shared: bool = False
    sm_percentage: int | None = None

    def group(self, namespace: Namespace) -> SpaceGroup:
        """Return the group that is meant by a pod of this namespace."""
        return SpaceGroup(NO_NAMESPACE if self.is_shared else namespace, self.name)


@dataclass(frozen=True, slots=True)
class SpaceOptions:
    """What a pod of a namespace says with the policy `space`.

    Attributes:
        group: the pod's group.
        sm_percentage: percent of a card's multiprocessors that each container may use at most; None: no cap.
    """

    group: SpaceGroup
    sm_percentage: int | None = None


def wish(annotations: Mapping[str, str]) -> tuple[SpaceWish | None, list[Problem]]:
    """Read a pod's annotations: None where its policy is another one, or where they cannot be read."""
    if annotations.get(names.COMPUTE_POLICY) != SPACE:
        return None, [
            Problem(_field(name), annotations[name], f"needs {names.COMPUTE_POLICY}: {SPACE} too")
            for name in (names.SPACE_GROUP, names.SM_PERCENTAGE)
            if name in annotations
        ]
    problems: list[Problem] = []
    value = annotations.get(names.SPACE_GROUP)
    name = _group_name(value, problems)
    percentage = _percentage(annotations.get(names.SM_PERCENTAGE), problems)
    is_shared = value is not None and value.startswith(SHARED)
    return None if problems else SpaceWish(name, is_shared, percentage), problems


def parse(namespace: Namespace, annotations: Mapping[str, str]) -> tuple[SpaceOptions | None, list[Problem]]:
    """Read the annotations of a pod of this namespace, as `wish` does."""
    wished, problems = wish(annotations)
    return SpaceOptions(wished.group(namespace), wished.sm_percentage) if wished else None, problems


def guarantee(cores_of_members: Iterable[int]) -> int:
    """Return the percent of a card's time that is guaranteed to a group: what its members have, at most all."""
    return min(sum(cores_of_members), FULL_CORES)


def clients_left(members: int) -> int:
    """Return how many more containers a group can have on a card that has `members` of it."""
    return max(MAX_CLIENTS - members, 0)


def percentage_of_process(cap: int | None, own: int | None, processes: int) -> int | None:
    """Return the active thread percentage for a process that starts, None for no cap.

    `cap` is its container's, `own` what the program's environment says, which counts only where it is lower.
    `processes` are the container's living processes with this one, 1 or more: they divide the cap.
    """
    part = None if cap is None else max(cap // processes, 1)
    return min((percent for percent in (part, own) if percent is not None), default=None)


def _field(name: str) -> str:
    return f"metadata.annotations[{name}]"


def _group_name(value: str | None, problems: list[Problem]) -> str:
    if value is None:
        return ""
    name = value.removeprefix(SHARED)
    if not object_names.is_label(name):
        why = f"must be a DNS label of at most 63 characters, such as models, or {SHARED}NAME"
        problems.append(Problem(_field(names.SPACE_GROUP), value, why))
    return name


def _percentage(value: str | None, problems: list[Problem]) -> int | None:
    if value is None:
        return None
    if _PERCENT.fullmatch(value) and int(value) <= WHOLE_PERCENT:
        return int(value)
    why = f"must be a whole number of percent of a card's multiprocessors, 1 to {WHOLE_PERCENT}"
    problems.append(Problem(_field(names.SM_PERCENTAGE), value, why))
    return None
