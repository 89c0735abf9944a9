"""Room that is kept free for a gang: what the gang will take of cards, counted as taken for other pods.

There is room for one gang at a time, so that two gangs do not wait for each other's cards. Nothing is kept free against
pods of higher priority than the gang.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from extender.state.gang_members import GangKey, key_of
from extender.state.objects import WatchedPod
from vgpu.domain.cards.share import NodeState, Usage
from vgpu.domain.identifiers import CardUuid, NodeName
from vgpu.placement import preempt

Usages = Mapping[CardUuid, Usage]  # by the card's UUID

_NOTHING: Final[Mapping[NodeName, Usages]] = {}


@dataclass(frozen=True, slots=True)
class HeldRoom:
    """What is kept free for a gang.

    Attributes:
        key: of the gang.
        priority: of its pods.
        usages: what the gang will take of each card, by node.
        since_ms: since when, Unix milliseconds.
        until_ms: until when at most, Unix milliseconds.
    """

    key: GangKey
    priority: int
    usages: Mapping[NodeName, Usages] = field(default_factory=dict)
    since_ms: int = 0
    until_ms: int = 0

    @property
    def cards(self) -> int:
        """Number of cards of which anything is kept free."""
        return sum(map(len, self.usages.values()))

    def is_against(self, pod: WatchedPod) -> bool:
        """Whether this room is kept free against a pod: one of another gang, and of no higher priority."""
        return key_of(pod) != self.key and pod.scheduling.priority <= self.priority


class Holds:
    """The room that is kept free now, None where there is none."""

    def __init__(self) -> None:
        self.now: HeldRoom | None = None

    def against(self, pod: WatchedPod) -> Mapping[NodeName, Usages]:
        """Return what is kept free against a pod, by node."""
        held = self.now
        return held.usages if held is not None and held.is_against(pod) else _NOTHING

    def left(self, state: NodeState, pod: WatchedPod) -> NodeState:
        """Return what is left of a node for a pod; the same state where nothing is kept free."""
        held = self.against(pod).get(state.name)
        return preempt.with_usage(state, held) if held else state
