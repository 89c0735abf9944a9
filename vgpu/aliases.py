"""Foreign resource names, translated into ours.

Users of gpushare, HAMi and Volcano keep their manifests. Theirs are amounts per card, ours are the container's totals,
so amounts are multiplied by the count of cards. What each name means:

- gpushare: https://github.com/AliyunContainerService/gpushare-scheduler-extender (whole GiB unless set up for MiB)
- HAMi: https://github.com/Project-HAMi/HAMi, `docs/config.md` (MiB and percent; without memory, all of each card's)
- Volcano: https://github.com/volcano-sh/volcano, vGPU user guide (the same, and a count alone is whole cards)
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from vgpu import names, quantity
from vgpu.problem import Problem
from vgpu.quantity import FULL_CORES, WHOLE_PERCENT
from vgpu.request import MAX_GPUS

GIB_IN_MIB: Final = 1024


@dataclass(frozen=True, slots=True)
class Family:
    """One project's resource names; empty where it has no such name.

    Attributes:
        memory: memory on each card.
        percentage: percent of each card's memory.
        cores: percent of each card's time; 0 asks for none.
        count: how many cards.
        count_alone: whether the count by itself is this family's, and asks for whole cards.
        scheduler: the scheduler that its manifests name.
    """

    memory: str
    percentage: str = ""
    cores: str = ""
    count: str = ""
    count_alone: bool = False
    scheduler: str = ""

    def marker_names(self) -> frozenset[str]:
        """Return the names that show that a container speaks this family's language."""
        own = {self.memory, self.percentage, self.cores} | ({self.count} if self.count_alone else set())
        return frozenset(own - {""})

    def all_names(self) -> frozenset[str]:
        """Return every name of this family, the count too."""
        return self.marker_names() | ({self.count} - {""})


GPUSHARE: Final = Family(memory="aliyun.com/gpu-mem")
HAMI: Final = Family(
    memory="nvidia.com/gpumem",
    percentage="nvidia.com/gpumem-percentage",
    cores="nvidia.com/gpucores",
    count="nvidia.com/gpu",
    scheduler="hami-scheduler",
)
VOLCANO: Final = Family(
    memory="volcano.sh/vgpu-memory",
    percentage="volcano.sh/vgpu-memory-percentage",
    cores="volcano.sh/vgpu-cores",
    count="volcano.sh/vgpu-number",
    count_alone=True,
    scheduler="volcano",
)
FAMILIES: Final = (GPUSHARE, HAMI, VOLCANO)
MARKER_NAMES: Final = frozenset().union(*(family.marker_names() for family in FAMILIES))
SCHEDULERS: Final = frozenset(family.scheduler for family in FAMILIES) - {""}


@dataclass(frozen=True, slots=True)
class Translation:
    """What a container's foreign names mean.

    Attributes:
        ours: amounts by our names; empty where there is nothing to translate.
        removed: the foreign names that they replace.
        problems: what could not be translated; then the others mean nothing.
    """

    ours: Mapping[str, str] = field(default_factory=dict)
    removed: frozenset[str] = frozenset()
    problems: tuple[Problem, ...] = ()


NOT_TRANSLATED: Final = Translation()


def translate(path: str, asked: Mapping[str, str], gpushare_unit_mib: int = GIB_IN_MIB) -> Translation:
    """Translate one container's amounts; `path` is where they stand, `gpushare_unit_mib` the MiB of gpushare's unit."""
    families = [family for family in FAMILIES if family.marker_names() & asked.keys()]
    if not families:
        return NOT_TRANSLATED
    mixed = _mixed(path, asked, families)
    if mixed:
        return Translation(problems=mixed)
    family = families[0]
    reader = _Reader(path, asked, family, gpushare_unit_mib if family is GPUSHARE else 1)
    ours = reader.ours()
    removed = family.all_names() & asked.keys()
    return Translation(problems=tuple(reader.problems)) if reader.problems else Translation(ours, removed)


def _mixed(path: str, asked: Mapping[str, str], families: Iterable[Family]) -> tuple[Problem, ...]:
    """Two languages in one container have no common meaning."""
    first, *others = families
    other_names = {name for family in others for name in family.marker_names()} | set(names.USER_RESOURCES)
    return tuple(
        Problem(f"{path}[{name}]", asked[name], f"cannot stand beside {min(first.marker_names() & asked.keys())}")
        for name in sorted(other_names & asked.keys())
    )


class _Reader:
    """Reads one container's amounts in one family's names and collects what is wrong with them."""

    def __init__(self, path: str, asked: Mapping[str, str], family: Family, unit_mib: int) -> None:
        self._path = path
        self._asked = asked
        self._family = family
        self._unit_mib = unit_mib
        self.problems: list[Problem] = []

    def ours(self) -> dict[str, str]:
        count = self._number(self._family.count, 1, MAX_GPUS)
        memory = self._number(self._family.memory, 1, quantity.MAX_MIB // self._unit_mib)
        percentage = self._number(self._family.percentage, 1, WHOLE_PERCENT)
        cores = self._number(self._family.cores, 0, FULL_CORES)
        cards = count or 1
        amounts = {
            names.GPU: count,
            names.GPU_MEM: memory and memory * self._unit_mib * cards,
            names.GPU_MEM_PERCENTAGE: percentage or self._all_memory(memory),
            names.GPU_CORES: cores and cores * cards,
        }
        return {name: str(amount) for name, amount in amounts.items() if amount}

    def _all_memory(self, memory: int | None) -> int | None:
        """Cores without memory mean all of each card's memory in these languages, and still a share."""
        return WHOLE_PERCENT if memory is None and self._family.cores in self._asked else None

    def _number(self, name: str, low: int, high: int) -> int | None:
        text = self._asked.get(name)
        if text is None:
            return None
        value = quantity.whole_number(text)
        if value is not None and low <= value <= high:
            return value
        self.problems.append(Problem(f"{self._path}[{name}]", text, f"must be a whole number, {low} to {high}"))
        return None
