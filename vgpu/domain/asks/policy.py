"""What a pod can set by annotation: closed sets of values; unknown values are refused by name."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Final, TypeVar

from vgpu.domain import names
from vgpu.domain.asks import space
from vgpu.domain.asks.space import SpaceGroup, SpaceWish
from vgpu.domain.cards.device import Card
from vgpu.domain.cards.reasons import Reason
from vgpu.domain.identifiers import CardUuid, Namespace
from vgpu.domain.problem import Problem

MAX_PRIORITY = 100
MAX_MODELS = 16
MAX_UUIDS = 64
MAX_LABELS = 8
MAX_WORD = 64  # characters; the longest model name of NVIDIA has 40, a UUID has 40
# https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#syntax-and-character-set
_NAME = r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
_LABEL = re.compile(rf"((?:[a-z0-9](?:[-a-z0-9.]{{0,251}}[a-z0-9])?/)?{_NAME})=((?:{_NAME})?)", re.ASCII)
E = TypeVar("E", bound=StrEnum)
Labels = frozenset[tuple[str, str]]


class PackingPolicy(StrEnum):
    """How to choose among nodes, or among the cards of one node."""

    BINPACK = "binpack"  # the fullest
    SPREAD = "spread"  # the emptiest
    FRAGMENTATION = "fragmentation"  # what takes the least from the pods to come
    FGD = "fgd"  # the least growth of the expected fragmentation
    TOPOLOGY = "topology"  # the best connections, by NVLink and NUMA node
    POWER = "power"  # the fewest cards and nodes in use


class RackPolicy(StrEnum):
    """How the pods of one job are placed over racks."""

    PACK = "pack"  # where the most pods of the job are
    SPREAD = "spread"  # where the fewest are


class ComputePolicy(StrEnum):
    """How the limiter enforces cores."""

    FIXED = "fixed"  # never more than the cores
    BURST = "burst"  # the cores are guaranteed, idle time may be used
    BEST_EFFORT = "best-effort"  # idle time only


class MemoryPolicy(StrEnum):
    """What happens to an allocation within the limit while the card is full."""

    REFUSE = "refuse"  # out of memory, as without the limiter
    SPILL = "spill"  # served from managed memory, which the driver moves between card and host


class GangCards(StrEnum):
    """Whether two pods of one gang may be on one card."""

    OWN = "own"  # no card has two of them, as NCCL needs it
    ANY = "any"  # as any two pods


def default_compute_policy(cores: int | None) -> ComputePolicy:
    """Return the policy where none is named: a share of the time (`cores`) is a limit; without one, idle time is used.

    `cores` of 0 mean the same as None: no time is set aside.
    """
    return ComputePolicy.FIXED if cores else ComputePolicy.BURST


@dataclass(frozen=True, slots=True)
class CardSelector:
    """Which cards a pod accepts. Empty collections accept every card.

    `beside` are the UUIDs of cards with pods on them that the pod must be beside (None: anywhere), `apart` those with
    pods that must not be beside it. `full_groups` are those on which the pod's group in space has no room for it. They
    follow from what is on the cards, so they change (ADR 72). `in_space`: only cards that serve groups in space.

    A model matches where the text is contained in the card's model, ignoring case: `H100` matches
    `NVIDIA H100 80GB HBM3`.
    """

    use_models: tuple[str, ...] = ()
    avoid_models: tuple[str, ...] = ()
    use_uuids: frozenset[CardUuid] = frozenset()
    avoid_uuids: frozenset[CardUuid] = frozenset()
    beside: frozenset[CardUuid] | None = None
    apart: frozenset[CardUuid] = frozenset()
    full_groups: frozenset[CardUuid] = frozenset()
    in_space: bool = False

    def refusal(self, card: Card) -> Reason | None:
        """Return why this card is not accepted, or None where it is."""
        if not _accepts_model(card.model, self.use_models, self.avoid_models):
            return Reason.GPU_MODEL_MISMATCH
        if (self.use_uuids and card.uuid not in self.use_uuids) or card.uuid in self.avoid_uuids:
            return Reason.GPU_UUID_MISMATCH
        return Reason.CARD_WITHOUT_SPACE if self.in_space and not card.serves_space else None

    def neighbour_refusal(self, card: Card) -> Reason | None:
        """Return why the pods on a card rule it out, or None where they do not."""
        if self.beside is not None and card.uuid not in self.beside:
            return Reason.CARD_AFFINITY
        if card.uuid in self.apart:
            return Reason.CARD_ANTI_AFFINITY
        return Reason.CARD_SPACE_GROUP_FULL if card.uuid in self.full_groups else None

    @property
    def named_uuids(self) -> frozenset[CardUuid]:
        """The cards that are judged otherwise than cards like them."""
        return self.use_uuids | self.avoid_uuids | self.apart | self.full_groups | (self.beside or frozenset())


@lru_cache(maxsize=1 << 12)  # a cluster has few models, and a request is judged on each of its cards
def _accepts_model(model: str, use: tuple[str, ...], avoid: tuple[str, ...]) -> bool:
    folded = model.casefold()
    wanted = not use or any(text in folded for text in use)
    return wanted and not any(text in folded for text in avoid)


@dataclass(frozen=True, slots=True)
class PodOptions:
    """Everything that a pod can set by annotation; None leaves the choice to the cluster's defaults.

    The compute policy of a pod in space (`space`) is `burst`: what its processes have outside of their group.
    """

    node_policy: PackingPolicy | None = None
    gpu_policy: PackingPolicy | None = None
    rack_policy: RackPolicy | None = None
    compute_policy: ComputePolicy | None = None
    memory_policy: MemoryPolicy | None = None
    priority: int = 0
    selector: CardSelector = CardSelector()
    affinity: Labels = frozenset()
    anti_affinity: Labels = frozenset()
    preferred_affinity: Labels = frozenset()
    preferred_anti_affinity: Labels = frozenset()
    space: SpaceWish | None = None
    gang_cards: GangCards | None = None

    @property
    def compute_policy_name(self) -> str:
        """The compute policy as the pod names it; empty where it names none."""
        return space.SPACE if self.space else self.compute_policy or ""

    def group(self, namespace: Namespace) -> SpaceGroup | None:
        """Return the group in space of a pod of this namespace; None where it is in none."""
        return self.space.group(namespace) if self.space else None

    @property
    def is_apart_from_gang(self) -> bool:
        """Whether no other pod of the pod's gang may be on its cards."""
        return self.gang_cards is GangCards.OWN

    @property
    def prefers_neighbours(self) -> bool:
        """Whether the pod prefers cards by the pods on them."""
        return bool(self.preferred_affinity or self.preferred_anti_affinity or self.space)


NO_OPTIONS: Final = PodOptions()
_BY_USERS: Final = frozenset(names.USER_ANNOTATIONS)


def parse(annotations: Mapping[str, str]) -> tuple[PodOptions, list[Problem]]:
    """Read a pod's annotations; each one that cannot be read is a problem, and its option has the default."""
    if _BY_USERS.isdisjoint(annotations):
        return NO_OPTIONS, []
    wished, problems = space.wish(annotations)
    options = PodOptions(
        node_policy=_choice(PackingPolicy, names.NODE_POLICY, annotations, problems),
        gpu_policy=_choice(PackingPolicy, names.GPU_POLICY, annotations, problems),
        rack_policy=_choice(RackPolicy, names.RACK_POLICY, annotations, problems),
        compute_policy=_compute_policy(annotations, problems),
        memory_policy=_choice(MemoryPolicy, names.MEMORY_POLICY, annotations, problems),
        priority=_priority(annotations, problems),
        selector=CardSelector(
            use_models=_models(names.USE_GPU_MODEL, annotations, problems),
            avoid_models=_models(names.AVOID_GPU_MODEL, annotations, problems),
            use_uuids=_uuids(names.USE_GPU_UUID, annotations, problems),
            avoid_uuids=_uuids(names.AVOID_GPU_UUID, annotations, problems),
            in_space=wished is not None,
        ),
        affinity=_labels(names.GPU_AFFINITY, annotations, problems),
        anti_affinity=_labels(names.GPU_ANTI_AFFINITY, annotations, problems),
        preferred_affinity=_labels(names.PREFERRED_GPU_AFFINITY, annotations, problems),
        preferred_anti_affinity=_labels(names.PREFERRED_GPU_ANTI_AFFINITY, annotations, problems),
        space=wished,
        gang_cards=_choice(GangCards, names.GANG_CARDS, annotations, problems),
    )
    return options, problems


def _field(name: str) -> str:
    return f"metadata.annotations[{name}]"


def _choice(
    kind: type[E], name: str, annotations: Mapping[str, str], problems: list[Problem], others: tuple[str, ...] = ()
) -> E | None:
    """Read a value; `others` are values of the annotation that are read elsewhere."""
    value = annotations.get(name)
    if value is None:
        return None
    if value not in set(kind):
        problems.append(Problem(_field(name), value, f"must be one of {', '.join((*kind, *others))}"))
        return None
    return kind(value)


def _compute_policy(annotations: Mapping[str, str], problems: list[Problem]) -> ComputePolicy | None:
    if annotations.get(names.COMPUTE_POLICY) == space.SPACE:
        return ComputePolicy.BURST
    return _choice(ComputePolicy, names.COMPUTE_POLICY, annotations, problems, (space.SPACE,))


def _priority(annotations: Mapping[str, str], problems: list[Problem]) -> int:
    value = annotations.get(names.PRIORITY)
    if value is None:
        return 0
    if not (value.isascii() and value.isdigit() and int(value[:4]) <= MAX_PRIORITY and len(value) < 4):  # noqa: PLR2004
        problems.append(Problem(_field(names.PRIORITY), value, f"must be a whole number from 0 to {MAX_PRIORITY}"))
        return 0
    return int(value)


def _models(name: str, annotations: Mapping[str, str], problems: list[Problem]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(word.casefold() for word in _words(name, annotations, problems, MAX_MODELS)))


def _uuids(name: str, annotations: Mapping[str, str], problems: list[Problem]) -> frozenset[CardUuid]:
    return frozenset(map(CardUuid, _words(name, annotations, problems, MAX_UUIDS)))


def _labels(name: str, annotations: Mapping[str, str], problems: list[Problem]) -> Labels:
    """Read `KEY=VALUE,...`: a pod is meant whose labels have all of these."""
    value = annotations.get(name)
    if value is None:
        return frozenset()
    matches = [_LABEL.fullmatch(word.strip()) for word in value.split(",", MAX_LABELS)]
    found = [(match[1], match[2]) for match in matches if match]
    if len(found) < len(matches) or len(found) > MAX_LABELS:
        why = f"must be labels of pods as KEY=VALUE, at most {MAX_LABELS} of them separated by commas"
        problems.append(Problem(_field(name), value, why))
        return frozenset()
    return frozenset(found)


def _words(name: str, annotations: Mapping[str, str], problems: list[Problem], most: int) -> tuple[str, ...]:
    value = annotations.get(name)
    if value is None:
        return ()
    words = tuple(word.strip() for word in value.split(",", most))
    if len(words) > most or not all(0 < len(word) <= MAX_WORD for word in words):
        why = f"must be a comma-separated list of at most {most} entries, each with 1 to {MAX_WORD} characters"
        problems.append(Problem(_field(name), value, why))
        return ()
    return words
