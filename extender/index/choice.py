"""Filter and prioritize in one step, for a caller that owns an index: which of its nodes a pod would get, or why none.

Leases are not looked at. A node that lacks CPU or host memory is refused, as kube-scheduler refuses it.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from extender.index import nearest
from extender.index.ask import ContainerAsk
from extender.index.codes import CODES, FITS, REASONS, UNDECIDED
from extender.index.copies import Copies
from extender.index.judge import NodeJudge
from extender.index.nodes import Codes, NodeIndex, Places
from extender.index.ranking import Ranking
from vgpu.domain.asks.host_request import HostRequest
from vgpu.domain.asks.policy import PackingPolicy
from vgpu.domain.cards.reasons import Reason
from vgpu.domain.cards.share import NodeState
from vgpu.domain.identifiers import NodeName
from vgpu.placement import packed, room
from vgpu.placement.demand import Demand
from vgpu.placement.models import Models
from vgpu.placement.packed import Packed
from vgpu.placement.question import Question

_CPU: Final = CODES[Reason.NODE_INSUFFICIENT_CPU]
_MEMORY: Final = CODES[Reason.NODE_INSUFFICIENT_MEMORY]


@dataclass(frozen=True, slots=True)
class JudgedNodes:
    """A pod's judgement on the nodes of a choice: those that fit, and how many refuse it by which reason."""

    fitting: Places
    counts: Mapping[Reason, int]


class NodeChoice:
    """Chooses among the nodes named, which all have a row. `state` returns a node's state."""

    def __init__(self, index: NodeIndex, names: Sequence[NodeName], state: Callable[[NodeName], NodeState]) -> None:
        self._index = index
        self._state = state
        self._places = index.places(names)
        self._judge = NodeJudge(index)
        self._ranking = Ranking(index, Copies(index), state)

    def judge(
        self,
        asks: Sequence[ContainerAsk],
        host: HostRequest,
        exact: Iterable[NodeName],
        barred: Mapping[NodeName, Reason],
        place: Callable[[NodeName], Reason | None],
        reserved: Iterable[NodeName] = (),
    ) -> JudgedNodes:
        """Judge a pod on every node.

        `asks` are those of its containers that choose cards, in the kubelet's order. `place` judges the nodes that
        arrays do not decide, those in `exact`, and of those in `reserved` the ones that have room: it returns a
        refusal, or None where the pod fits. `barred` are the nodes that the pod's rules refuse: kube-scheduler asks for
        no card there.
        """
        places = self._places
        codes = self._judge.codes(asks, exact, reserved)[places]
        lacking = self._lacking(host)
        codes = np.where((codes == FITS) & (lacking != FITS), lacking, codes)
        by_rules = self._barred(barred)
        codes = np.where(by_rules != FITS, by_rules, codes)
        for position in np.flatnonzero(codes == UNDECIDED).tolist():
            refused = place(self._index.name(places[position]))
            codes[position] = CODES[refused] if refused else FITS
        return JudgedNodes(places[codes == FITS], _counts(codes))

    def best(self, judged: JudgedNodes, policy: PackingPolicy, question: Question) -> NodeName:
        """Return the node that the policy prefers of those that fit; there must be one."""
        return self._index.name(self._ranking.best(judged.fitting, policy, question))

    def fitting(self, judged: JudgedNodes) -> list[NodeName]:
        """Return the nodes that fit."""
        return [self._index.name(place) for place in judged.fitting.tolist()]

    def only(self, judged: JudgedNodes, names: Collection[NodeName]) -> JudgedNodes:
        """Return a judgement in which no other nodes fit than these."""
        is_named = np.array([self._index.name(place) in names for place in judged.fitting.tolist()], np.bool_)
        return JudgedNodes(judged.fitting[is_named], judged.counts)

    def ordered(self, judged: JudgedNodes, policy: PackingPolicy, question: Question) -> list[NodeName]:
        """Return the nodes that fit, those that the policy prefers first."""
        return self._ranking.ordered(self.fitting(judged), policy, question)

    def nearest(self, ask: ContainerAsk, host: HostRequest, barred: Mapping[NodeName, Reason]) -> list[NodeName]:
        """Return the nodes that lack the least for a container, all equally little, without those in `wide`.

        `barred` are left out too.
        """
        is_open = (self._index.blocked[self._places] == FITS) & (self._lacking(host) == FITS)
        is_open &= self._barred(barred) == FITS
        return nearest.nearest(self._index, ask, self._places[is_open])

    def wide(self) -> list[NodeName]:
        """Return the nodes that have more cards than the index has columns."""
        is_wide = self._index.blocked[self._places] == UNDECIDED
        return [self._index.name(place) for place in self._places[is_wide].tolist()]

    def packed(self, demand: Demand, models: Models, closed: Collection[NodeName] = ()) -> Packed:
        """Add up the nodes that pods may use; `closed` ones take no pods now."""
        is_open = self._index.blocked[self._places] == FITS
        is_open &= ~np.isin(self._places, self._index.places(list(closed)))
        places, wide = self._places[is_open], [self._state(name) for name in self.wide() if name not in closed]
        rooms = [self._index.room(places), *(room.room_of(state, models) for state in wide)]
        cards = self._index.closed(places) + sum(map(room.closed_cards, wide))
        return packed.of_rooms(rooms, demand, lambda numbers: int(np.sum(numbers)), closed=cards)

    def _barred(self, barred: Mapping[NodeName, Reason]) -> Codes:
        """Return for each node the code by which it is barred, or FITS."""
        codes = np.full(len(self._places), FITS, np.uint8)
        for position, place in enumerate(self._places.tolist() if barred else ()):
            if reason := barred.get(self._index.name(place)):
                codes[position] = CODES[reason]
        return codes

    def _lacking(self, host: HostRequest) -> Codes:
        """Return for each node the code of what the host lacks, or FITS."""
        cpu, memory = self._index.host[:, self._places]
        return np.where(host.cpu_milli > cpu, _CPU, np.where(host.memory_mib > memory, _MEMORY, FITS)).astype(np.uint8)


def _counts(codes: Codes) -> dict[Reason, int]:
    counts = np.bincount(codes, minlength=len(REASONS)).tolist()
    return {reason: count for reason, count in zip(REASONS, counts, strict=False) if reason and count}
