"""The nodes that the process knows, as views, and as an index that is written when a question needs it."""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Final

from extender.index.choice import NodeChoice
from extender.index.nodes import NodeIndex
from extender.index.row import IndexRow
from extender.state.held_room import Usages
from vgpu.domain import names
from vgpu.domain.asks.node_rules import NodeRules
from vgpu.domain.asks.policy import PackingPolicy
from vgpu.domain.cards.reasons import Reason
from vgpu.domain.grants.assignment import Assignment
from vgpu.domain.identifiers import CardUuid, NodeName
from vgpu.placement import preempt
from vgpu.placement.choose import NodeRefusal
from vgpu.placement.models import Models
from vgpu.placement.simulation.simulate import Wanted
from vgpu.placement.snapshot import NodeView

MAX_RULES: Final = 64  # kinds of pods, by which nodes they may be on


@dataclass(frozen=True, slots=True)
class Update:
    """Node views that are new or changed, and the names of nodes that are gone. It has no answer."""

    changed: Sequence[NodeView]
    gone: Sequence[NodeName] = ()


@dataclass(frozen=True, slots=True)
class HoldUpdate:
    """What is kept free of each card for a gang, by node. It has no answer."""

    usages: Mapping[NodeName, Usages]


class Fleet:
    """The node views by name."""

    def __init__(self) -> None:
        self.views: dict[NodeName, NodeView] = {}
        self._held: Mapping[NodeName, Usages] = {}
        self._models = Models()
        self._index = NodeIndex(self._models)
        self._old: dict[NodeName, None] = {}
        self._choice: NodeChoice | None = None
        self._refused: dict[NodeRules, dict[NodeName, Reason]] = {}  # as long as no node's labels or taints change

    @property
    def slice_mib(self) -> int:
        """MiB of a slice; nodes whose slices differ from the cluster's are blocked."""
        return next((view.state.slice_mib for view in self.views.values() if view.blocked is None), 1)

    def nodes_with(self, uuids: Collection[CardUuid]) -> list[NodeName]:
        """Return the nodes that have any of these cards."""
        if not uuids:
            return []
        return [name for name, view in self.views.items() if any(card.card.uuid in uuids for card in view.state.cards)]

    def closed(self) -> frozenset[NodeName]:
        """Return the nodes that take no pods now, because they are cordoned or not Ready."""
        return frozenset(view.name for view in self.views.values() if view.marks.closed is not None)

    def apply(self, update: Update | HoldUpdate) -> None:
        """Take views, or the room that is kept free, from the parent process."""
        if isinstance(update, HoldUpdate):
            self._held = update.usages
            return
        for view in update.changed:
            self.put(view)
        for name in update.gone:
            self.views.pop(name, None)
            self._old[name] = None
        if update.gone:
            self._refused.clear()

    def kept_from(self, pod: Wanted) -> list[NodeName]:
        """Return the nodes on which room is kept free or reserved that a pod does not get."""
        named = [*(self._held if pod.is_kept_out else ()), *(name for name, _ in pod.reserved)]
        return [name for name in named if name in self.views]

    def left(self, pod: Wanted, name: NodeName) -> NodeView:
        """Return what a pod may have of a node beside room that is kept free for a gang."""
        view, held = self.views[name], self._held.get(name) if pod.is_kept_out else None
        return replace(view, state=preempt.with_usage(view.state, held)) if held else view

    def place(self, pod: Wanted, name: NodeName, policy: PackingPolicy) -> Assignment | NodeRefusal:
        """Return where a pod is placed on a node, or why it cannot be: the decision of filter."""
        placed, left = self.views[name].place(pod.request, policy, pod.host), self.left(pod, name)
        if isinstance(placed, NodeRefusal):
            return placed
        if (reason := dict(pod.reserved).get(name)) is not None:
            return NodeRefusal(reason)
        if left is self.views[name]:
            return placed
        beside = left.place(pod.request, policy, pod.host)
        return NodeRefusal(Reason.CARD_KEPT_FOR_GANG) if isinstance(beside, NodeRefusal) else beside

    def put(self, view: NodeView) -> None:
        """Take a view that is new or changed."""
        known = self.views.get(view.name)
        if known is None or known.marks != view.marks:
            self._refused.clear()
        self.views[view.name] = view
        self._old[view.name] = None

    def refused_by(self, rules: NodeRules) -> Mapping[NodeName, Reason]:
        """Return the nodes on which a pod with these rules may not be, whatever is free there."""
        if rules not in self._refused:
            if len(self._refused) >= MAX_RULES:
                self._refused.clear()
            judged = ((view.name, rules.refusal(view.name, view.marks)) for view in self.views.values())
            self._refused[rules] = {name: refused.reason for name, refused in judged if refused is not None}
        return self._refused[rules]

    def choice(self, models: Models) -> NodeChoice:
        """Return the choice among all nodes, with the cards' models numbered as in `models`, up to date."""
        if models is not self._models and models.names != self._models.names:  # a row that is written may add a model
            self._index, self._models = NodeIndex(models), models
            self._old, self._choice = dict.fromkeys(self.views), None
        is_known = all(self._index.row_of(name) is not None and name in self.views for name in self._old)
        for name in self._old:
            self._write(name)
        self._old = {}
        if self._choice is None or not is_known:
            self._choice = NodeChoice(self._index, list(self.views), lambda name: self.views[name].state)
        return self._choice

    @contextmanager
    def tried(self) -> Iterator[None]:
        """Take back every view that is put inside the block."""
        before = dict(self.views)
        try:
            yield
        finally:
            for name, view in before.items():
                if self.views[name] is not view:
                    self.put(view)

    def _write(self, name: NodeName) -> None:
        view = self.views.get(name)
        if view is None:
            self._index.remove(name)
        else:
            self._index.put(_row(view))


def _row(view: NodeView) -> IndexRow:
    if view.blocked is not None:
        return IndexRow(view.name, view.blocked, duration_s=math.inf)
    taken = view.state.devices
    slices, cards = (view.allocatable.get(resource, 0) - taken.get(resource, 0) for resource in names.KUBELET_RESOURCES)
    return IndexRow(view.name, None, view.state, (slices, cards), duration_s=math.inf)
