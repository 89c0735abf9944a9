"""Translates the resource names of gpushare, HAMi and Volcano into vgpushare's, so that users keep their manifests.

Their amounts are per card, vgpushare's are the container's totals, so amounts are multiplied by the number of cards.
What each name means:

- gpushare: https://github.com/AliyunContainerService/gpushare-scheduler-extender (whole GiB unless set up for MiB)
- HAMi: https://github.com/Project-HAMi/HAMi, `docs/config.md` (MiB and percent; without memory, all of each card's)
- Volcano: https://github.com/volcano-sh/volcano, vGPU user guide, and https://github.com/volcano-sh/devices (MiB and
  percent; a count alone means whole cards)
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from vgpu.domain import names, quantity
from vgpu.domain.asks.request import MAX_GPUS
from vgpu.domain.problem import Problem
from vgpu.domain.quantity import FULL_CORES, WHOLE_PERCENT

GIB_IN_MIB: Final = 1024


@dataclass(frozen=True, slots=True)
class AliasFamily:
    """One project's resource names; a name is empty where the project has none for that amount.

    Attributes:
        memory: memory on each card.
        percentage: percent of each card's memory.
        cores: percent of each card's time; 0 asks for no time.
        count: number of cards.
        count_alone: whether the count without another of the names belongs to this family, and asks for whole cards.
        scheduler: the scheduler that the project's manifests name.
    """

    memory: str
    percentage: str = ""
    cores: str = ""
    count: str = ""
    count_alone: bool = False
    scheduler: str = ""

    def marker_names(self) -> frozenset[str]:
        """Return the names that show that a container uses this family's names."""
        own = {self.memory, self.percentage, self.cores} | ({self.count} if self.count_alone else set())
        return frozenset(own - {""})

    def all_names(self) -> frozenset[str]:
        """Return every name of this family, including the count."""
        return self.marker_names() | ({self.count} - {""})


GPUSHARE: Final = AliasFamily(memory="aliyun.com/gpu-mem")
HAMI: Final = AliasFamily(
    memory="nvidia.com/gpumem",
    percentage="nvidia.com/gpumem-percentage",
    cores="nvidia.com/gpucores",
    count="nvidia.com/gpu",
    scheduler="hami-scheduler",
)
VOLCANO: Final = AliasFamily(
    memory="volcano.sh/vgpu-memory",
    percentage="volcano.sh/vgpu-memory-percentage",
    cores="volcano.sh/vgpu-cores",
    count="volcano.sh/vgpu-number",
    count_alone=True,
    scheduler="volcano",
)
VOLCANO_GPU: Final = AliasFamily(  # Volcano's first GPU sharing, which its documentation calls deprecated
    memory="volcano.sh/gpu-memory",
    count="volcano.sh/gpu-number",
    count_alone=True,
    scheduler="volcano",
)
FAMILIES: Final = (GPUSHARE, HAMI, VOLCANO, VOLCANO_GPU)
REFUSED: Final = {
    "nvidia.com/priority": f"is not supported; a pod's priority is the annotation {names.PRIORITY}, higher goes first",
    "nvidia.com/cores": "is not supported; write nvidia.com/gpucores",
    "aliyun.com/gpu-count": f"is not supported; ask for {names.GPU}",
}
MARKER_NAMES: Final = frozenset(REFUSED).union(*(family.marker_names() for family in FAMILIES))
SCHEDULERS: Final = frozenset(family.scheduler for family in FAMILIES) - {""}


@dataclass(frozen=True, slots=True)
class Translation:
    """A container's foreign names, translated.

    Attributes:
        ours: amounts by vgpushare's names; empty where there is nothing to translate.
        removed: the foreign names to remove.
        problems: what could not be translated; where there are any, `ours` and `removed` are empty.
    """

    ours: Mapping[str, str] = field(default_factory=dict)
    removed: frozenset[str] = frozenset()
    problems: tuple[Problem, ...] = ()


NOT_TRANSLATED: Final = Translation()


def translate(path: str, asked: Mapping[str, str], gpushare_unit_mib: int = GIB_IN_MIB) -> Translation:
    """Translate one container's amounts.

    `path` is the field path of the amounts, `gpushare_unit_mib` the MiB of one `aliyun.com/gpu-mem`.
    """
    if MARKER_NAMES.isdisjoint(asked):
        return NOT_TRANSLATED
    refused = [Problem(f"{path}[{name}]", asked[name], REFUSED[name]) for name in sorted(REFUSED.keys() & asked.keys())]
    if refused:
        return Translation(problems=tuple(refused))
    families = [family for family in FAMILIES if family.marker_names() & asked.keys()]
    mixed = _mixed(path, asked, families)
    if mixed:
        return Translation(problems=mixed)
    family = families[0]
    reader = _AliasReader(path, asked, family, gpushare_unit_mib if family is GPUSHARE else 1)
    ours = reader.ours()
    removed = family.all_names() & asked.keys()
    return Translation(problems=tuple(reader.problems)) if reader.problems else Translation(ours, removed)


def _mixed(path: str, asked: Mapping[str, str], families: Iterable[AliasFamily]) -> tuple[Problem, ...]:
    """Return a problem for each name of a second family: names of two families in one container are ambiguous."""
    first, *others = families
    other_names = {name for family in others for name in family.marker_names()} | set(names.USER_RESOURCES)
    return tuple(
        Problem(f"{path}[{name}]", asked[name], f"cannot be combined with {min(first.marker_names() & asked.keys())}")
        for name in sorted(other_names & asked.keys())
    )


class _AliasReader:
    """Reads one container's amounts by one family's names and collects the problems."""

    def __init__(self, path: str, asked: Mapping[str, str], family: AliasFamily, unit_mib: int) -> None:
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
        """Return 100 percent where cores stand without memory: in these families that is a share of all memory."""
        return WHOLE_PERCENT if memory is None and self._family.cores in self._asked else None

    def _number(self, name: str, low: int, high: int) -> int | None:
        text = self._asked.get(name)
        if text is None:
            return None
        value = quantity.whole_number(text)
        if value is not None and low <= value <= high:
            return value
        unit, hint = "", ""
        if name == self._family.memory:
            unit = " of MiB" if self._unit_mib == 1 else " of GiB"
            hint = quantity.number_hint(text, self._unit_mib)
        why = f"must be a whole number{unit}, {low} to {high}{hint}"
        self.problems.append(Problem(f"{self._path}[{name}]", text, why))
        return None
