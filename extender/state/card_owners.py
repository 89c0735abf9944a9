"""Which GPUNode a card counts on, where several report the same UUID: `vgpu.domain.cards.ownership` has the rule.

A change of one GPUNode costs what its own cards cost, whatever the size of the cluster. A device plugin can fall silent
without any change of an object: `review` decides again about the cards that several GPUNodes report.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from extender.state.objects import GpuNode
from vgpu.domain.cards import ownership
from vgpu.domain.cards.ownership import CardClaim
from vgpu.domain.identifiers import NO_NODE, CardUuid, NodeName


@dataclass(frozen=True, slots=True)
class _Report:
    created: datetime
    is_healthy: bool


class CardOwners:
    """The owners of all cards.

    `lives` returns whether a node's device plugin renews its Lease in time, and when the Lease changed last.
    """

    def __init__(self, lives: Callable[[NodeName], tuple[bool, float]]) -> None:
        self._lives = lives
        self._listeners: list[Callable[[NodeName], None]] = []
        self._reports: dict[CardUuid, dict[NodeName, _Report]] = {}  # by card and node
        self._cards: dict[NodeName, frozenset[CardUuid]] = {}  # by node
        self._owners: dict[CardUuid, NodeName] = {}  # by card
        self._contested: set[CardUuid] = set()  # cards that several GPUNodes report
        self._alive: dict[NodeName, bool] = {}  # of the nodes with such cards: whether the plugin lived at the decision

    def listen(self, moved: Callable[[NodeName], None]) -> None:
        """Call `moved` with the name of each node where a card begins or ceases to count by a review."""
        self._listeners.append(moved)

    def put(self, gpunode: GpuNode) -> set[NodeName]:
        """Take a GPUNode that is new or changed; return the nodes where a card begins or ceases to count."""
        name = gpunode.node.name
        created = ownership.age(gpunode.created)
        reports = {card.uuid: _Report(created, card.healthy) for card in gpunode.node.cards}
        gone = self._cards.get(name, frozenset()) - reports.keys()
        for card, report in reports.items():
            self._reports.setdefault(card, {})[name] = report
        for card in gone:
            self._withdraw(card, name)
        self._cards[name] = frozenset(reports)
        return self._decide(reports.keys() | gone)

    def remove(self, name: NodeName) -> set[NodeName]:
        """Take a GPUNode's deletion; return the nodes where a card begins or ceases to count."""
        cards = self._cards.pop(name, frozenset())
        for card in cards:
            self._withdraw(card, name)
        return self._decide(cards)

    def review(self) -> None:
        """Decide again about the cards of nodes whose plugin has fallen silent, or is back; tell the listeners."""
        changed = [node for node, was_alive in self._alive.items() if self._lives(node)[0] != was_alive]
        moved = self._decide({card for node in changed for card in self._cards.get(node, ())})
        for node in moved:
            for listener in self._listeners:
                listener(node)

    def owner(self, card: CardUuid) -> NodeName:
        """Return the node on which a card counts; no node where no GPUNode reports it."""
        return self._owners.get(card, NO_NODE)

    @property
    def are_contested(self) -> bool:
        """Whether any card is reported by several GPUNodes; else each card counts on the node that reports it."""
        return bool(self._contested)

    def nodes_with(self, cards: Iterable[CardUuid]) -> set[NodeName]:
        """Return the nodes whose GPUNodes report any of these cards."""
        return {node for card in cards for node in self._reports.get(card, ())}

    @property
    def duplicates(self) -> Mapping[NodeName, Mapping[CardUuid, NodeName]]:
        """By node, its cards that count on another node, each with that node's name."""
        found: dict[NodeName, dict[CardUuid, NodeName]] = {}
        for card in sorted(self._contested):
            for node in self._reports[card].keys() - {self._owners[card]}:
                found.setdefault(node, {})[card] = self._owners[card]
        return found

    def _withdraw(self, card: CardUuid, node: NodeName) -> None:
        del self._reports[card][node]
        if not self._reports[card]:
            del self._reports[card]

    def _decide(self, cards: Iterable[CardUuid]) -> set[NodeName]:
        changed: set[NodeName] = set()
        for card in cards:
            before, after = self._owners.pop(card, NO_NODE), self._decided(card)
            if after:
                self._owners[card] = after
            if before != after:
                changed |= {before, after}
        self._alive = {node: alive for node, alive in self._alive.items() if self._has_contested(node)}
        return changed - {NO_NODE}

    def _decided(self, card: CardUuid) -> NodeName:
        reports = self._reports.get(card, {})
        if len(reports) < 2:  # noqa: PLR2004 - one report is not contested
            self._contested.discard(card)
            return next(iter(reports), NO_NODE)
        self._contested.add(card)
        return ownership.owner(self._claim(node, report) for node, report in reports.items())

    def _claim(self, node: NodeName, report: _Report) -> CardClaim:
        is_alive, renewed = self._lives(node)
        self._alive[node] = is_alive
        return CardClaim(node, is_alive, renewed, report.is_healthy, report.created)

    def _has_contested(self, node: NodeName) -> bool:
        return not self._contested.isdisjoint(self._cards.get(node, ()))


def message(duplicates: Mapping[CardUuid, NodeName]) -> str:
    """Say which cards of a GPUNode count on which other nodes."""
    cards = ", ".join(f"{card} on {node}" for card, node in sorted(duplicates.items()))
    rule = "cards that another GPUNode reports too count on the node whose device plugin lives"
    return f"{rule}, not on this one: {cards}"
