"""What has changed of the cluster since the last snapshot, in pieces that the verbs' event loop makes one by one.

The journals of the state say which pods and nodes to look at. Time changes nodes too: a device plugin falls silent, and
releases and departures are forgotten.
"""

from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Final

from extender.admin.exchange.messages import Piece, SnapshotEnd
from extender.admin.exchange.part_alarms import HEALTHY, PartHealth
from extender.admin.exchange.sent_objects import SentObjects, batches, is_same_view
from extender.explain.last_decisions import LastDecision
from extender.gangs.tracker import GangTracker
from extender.lead.admin_address import THIS_ONE, LeadingReplica
from extender.state.cluster import Cluster
from extender.state.held_room import HeldRoom, Usages
from extender.state.objects import GpuNode, WatchedPod
from extender.verbs.filter import Filter
from vgpu.domain import names
from vgpu.domain.asks import node_rules
from vgpu.domain.cards.share import NodeState
from vgpu.domain.identifiers import NodeName, PodUid
from vgpu.placement.policies import DefaultPolicies
from vgpu.placement.snapshot import NodeView

NODES_PER_LOOK: Final = 8  # between two looks at the clock: the pieces of 8 nodes take half a millisecond
PODS_PER_LOOK: Final = 500  # likewise: few of them have changed
NOTHING_READ: Final = -1  # of a journal: before its first change


@dataclass(frozen=True, slots=True)
class SnapshotInputs:
    """What snapshots are made from.

    Attributes:
        cluster: the pods and nodes.
        node_filter: judges nodes; it must not be the verbs' one.
        gangs: what is known of each gang.
        decisions: returns the last decision on each pod that filter refused.
        ready: returns when the first lists are complete.
        why_not_bound: returns why no replica binds pods; empty where one does.
        policies: returns the cluster's packing policies, with what it has learned by now.
        health: returns what is wrong with the extender.
        leader: returns the replica that leads.
    """

    cluster: Cluster
    node_filter: Filter
    gangs: GangTracker
    decisions: Callable[[], Mapping[PodUid, LastDecision]]
    ready: Callable[[], Awaitable[None]]
    why_not_bound: Callable[[], str]
    policies: Callable[[], DefaultPolicies]
    health: Callable[[], PartHealth] = lambda: HEALTHY
    leader: Callable[[], LeadingReplica] = lambda: THIS_ONE


@dataclass(frozen=True, slots=True)
class _Sent:
    pods: SentObjects[PodUid, WatchedPod] = field(default_factory=lambda: SentObjects("pods"))
    gpunodes: SentObjects[NodeName, GpuNode] = field(default_factory=lambda: SentObjects("gpunodes"))
    views: SentObjects[NodeName, NodeView] = field(default_factory=lambda: SentObjects("views", is_same_view))
    decisions: SentObjects[PodUid, LastDecision] = field(default_factory=lambda: SentObjects("decisions"))
    usages: SentObjects[NodeName, Usages] = field(default_factory=lambda: SentObjects("held_usages"))


class SnapshotChanges:
    """What one copy of the cluster lacks."""

    def __init__(self, inputs: SnapshotInputs) -> None:
        self._inputs = inputs
        self._cluster = inputs.cluster
        self._number = 0
        self._sent = _Sent()
        self._pods_read = self._nodes_read = NOTHING_READ
        self._silent: Collection[NodeName] = ()
        self._policies: DefaultPolicies | None = None

    def pieces(self) -> Iterator[Piece | SnapshotEnd | None]:
        """Yield the pieces; each object is as it is when its piece is made."""
        objects, sent, held = self._cluster.objects, self._sent, self._cluster.holds.now
        decisions, usages = self._inputs.decisions(), held.usages if held is not None else {}
        for uids in batches(self._changed_pods(), PODS_PER_LOOK):
            yield from sent.pods.pieces(uids, objects.pods.get)
            yield None
        for nodes in batches(self._changed_nodes(), NODES_PER_LOOK):
            yield from (*sent.gpunodes.pieces(nodes, objects.gpunodes.get), *sent.views.pieces(nodes, self._view))
            yield None
        for uids in batches(chain(decisions, sent.decisions.keys()), PODS_PER_LOOK):
            yield from sent.decisions.pieces(uids, decisions.get)
            yield None
        for nodes in batches(chain(usages, sent.usages.keys()), PODS_PER_LOOK):
            yield from sent.usages.pieces(nodes, usages.get)
            yield None
        yield self._end(held)

    def _changed_pods(self) -> Iterable[PodUid]:
        pods, journal = self._cluster.objects.pods, self._cluster.objects.changed_pods
        changed, self._pods_read = journal.since(self._pods_read), journal.count
        return chain(tuple(pods), self._sent.pods.keys()) if changed is None else changed

    def _changed_nodes(self) -> Iterable[NodeName]:
        """Return the nodes that have changed, and those that time may have changed: with a Lease that has expired."""
        self._cluster.states.expire()
        objects, index = self._cluster.objects, self._cluster.rows.index
        journal, before = objects.changed_nodes, self._silent
        changed, self._nodes_read = journal.since(self._nodes_read), journal.count
        self._silent = index.silent(self._cluster.now())
        if changed is None:
            return chain(tuple(objects.gpunodes), self._sent.gpunodes.keys())
        without_row = objects.gpunodes if len(index) != len(objects.gpunodes) else ()
        return changed.union(before, self._silent, (name for name in without_row if index.row_of(name) is None))

    def _end(self, held: HeldRoom | None) -> SnapshotEnd:
        inputs, policies = self._inputs, self._inputs.policies()
        is_known = _are_alike(self._policies, policies)
        self._policies = replace(policies, models=policies.models.copy())
        self._number += 1
        return SnapshotEnd(
            number=self._number,
            slice_mib=self._cluster.slice_mib,
            why_not_bound=inputs.why_not_bound(),
            policies=None if is_known else self._policies,
            health=inputs.health(),
            leader=inputs.leader(),
            held=replace(held, usages={}) if held is not None else None,
            impossible_gangs=dict(inputs.gangs.known.impossible()),
        )

    def _view(self, name: NodeName) -> NodeView | None:
        if name not in self._cluster.objects.gpunodes:
            return None
        usable = self._cluster.states.usable(name)
        kubelet = self._cluster.objects.nodes.get(name)
        allocatable = kubelet.allocatable if kubelet is not None else {}
        marks = kubelet.marks if kubelet is not None else node_rules.NO_MARKS
        silent_since = self._cluster.leases.silent_since(names.node_lease(name))
        if isinstance(usable, NodeState):
            return NodeView(name, usable, None, allocatable, silent_since, marks)
        return NodeView(name, self._cluster.states.of(name), usable, allocatable, silent_since, marks)


def _are_alike(sent: DefaultPolicies | None, now: DefaultPolicies) -> bool:
    """Whether policies that were sent are as those of now, and have learned as much."""
    if sent is None or sent.demand is not now.demand or sent.models.names != now.models.names:
        return False
    return (sent.node_policy, sent.gpu_policy) == (now.node_policy, now.gpu_policy)
