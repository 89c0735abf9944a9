"""A state machine over two replicas that filter, prioritize and bind on two nodes, of one card and of two.

`truth` has the pods of the API server; each replica sees them through a watch of its own, which lags, breaks off and
lists anew. One replica leads at a time; a new leader waits until Bindings of the one before can no longer be carried
out, and lists. Never is more of a card taken than it has, no two pods that keep each other off share a card, filter
answers as the walk over all nodes, and in the end nothing is lost or counted twice.
"""

import asyncio
import os
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from msgspec import structs

from extender.gangs.bind_gate import BindGate
from extender.history.recording.feed import Feed
from extender.history.recording.recorder import NO_RECORDER
from extender.lead import binding_outcome
from extender.protocol.wire import BindArgs
from extender.state.cluster import Cluster
from extender.state.objects import GpuNode, KubeNode, WatchedLease, WatchedPod
from extender.state.pod_reader import PodReader
from extender.state.updates import HELD_REPORT_LAG_S
from extender.verbs.bind import Binder
from extender.verbs.filter import Filter
from extender.verbs.prioritize import prioritize
from tests import strategies
from tests.extender.conftest import Clock, Leader
from tests.extender.gangs import gangs
from vgpu.domain import names
from vgpu.domain.cards.device import Node
from vgpu.domain.cards.share import CardState
from vgpu.domain.grants import usage
from vgpu.domain.grants.assignment import Assignment
from vgpu.domain.identifiers import CardUuid, NodeName, PodUid
from vgpu.placement import fit
from vgpu.placement.policies import DefaultPolicies

NODES = (NodeName("n1"), NodeName("n2"))
SLICES = 4
CARDS = {
    name: tuple(replace(strategies.card(n, SLICES * 256), uuid=CardUuid(f"{name}-{n}")) for n in range(count))
    for name, count in zip(NODES, (1, 2), strict=True)
}
DEFAULTS = DefaultPolicies()
KINDS: list[dict[str, int | str]] = [
    {"gpu_mem": 256}, {"gpu_mem": 300, "gpu_cores": 60}, {"gpu_mem": 1024}, {"gpu": 1}, {"gpu": 2, "gpu_mem": 1024},
]  # fmt: skip
APART, BESIDE = {names.GPU_ANTI_AFFINITY: "app=a"}, {names.GPU_AFFINITY: "app=a"}
ANNOTATIONS: list[dict[str, str]] = [{}, APART, APART, BESIDE, {names.NODE_POLICY: "spread"}]
OUTCOMES = st.sampled_from(["commits", "commits", "refused", "lost", "late", "late"])


@dataclass
class Replica:
    """An extender: what it has seen of the log, and its Bindings without a response."""

    clock: Clock
    seen: int = 0
    answers: list[tuple[str, str]] = field(default_factory=list)  # of filter: pod and node, to be bound later
    concluded: list[tuple[str, str]] = field(default_factory=list)  # bound, but the replica does not know yet

    def __post_init__(self) -> None:
        self.cluster = Cluster(256, self.clock)
        self.filter = Filter(self.cluster, DEFAULTS)
        client: Any = None  # never called: the test reserves and concludes without an API server
        feed, gate = Feed(NO_RECORDER, {}, lambda: 0, ""), BindGate(gangs.tracker(self.cluster), Leader())
        self.binder = Binder(
            client, self.cluster.objects.pods, PodReader(), self.cluster.reservations, self.filter, Leader(), feed, gate
        )
        for name, cards in CARDS.items():
            self.cluster.updates.upsert_gpunodes(GpuNode(Node(name, 256, cards), name, "2026-01-01T00:00:00Z", 1))
            self.cluster.updates.upsert_nodes(KubeNode(name, {names.SLICE: 2 * SLICES, names.CARD: 2}))
        self.renew_leases()

    def renew_leases(self) -> None:
        for name in NODES:
            self.cluster.leases.put(WatchedLease(names.node_lease(name), name, str(self.clock.seconds), 3))

    def best(self, pod: WatchedPod) -> str | None:
        """Filter and prioritize, as kube-scheduler asks; the answer is that of the walk."""
        answer = asyncio.run(self.filter.judge(pod, NODES, asyncio.sleep))
        fitting = [NodeName(name.decode().strip('"')) for name in answer.fitting()]
        exact = Filter(self.cluster, DEFAULTS).nodes(pod, NODES)
        assert fitting == exact.fitting
        if not fitting:
            return None
        scores = asyncio.run(prioritize(pod, fitting, self.cluster, DEFAULTS, asyncio.sleep))
        (best,) = scores[10]
        return best.decode().strip('"')


@dataclass
class Posted:
    """A Binding without a response; if it has arrived, the server may carry it out until `ends`."""

    by: Replica
    pod: WatchedPod
    node: str
    assignment: Assignment
    ends: float
    arrived: bool


class Replicas(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.clock = Clock()
        self.truth: dict[str, WatchedPod] = {}
        self.log: list[tuple[str, WatchedPod]] = []
        self.unknown: list[Posted] = []
        self.replicas = [Replica(self.clock), Replica(self.clock)]
        self.count = 0

    @property
    def leader(self) -> Replica:
        return self.replicas[0]

    def write(self, pod: WatchedPod, kind: str = "upsert") -> None:
        """Write the log, whose length is the resourceVersion."""
        written = structs.replace(pod, version=len(self.log) + 1)
        self.log.append((kind, written))
        if kind == "upsert" and not pod.is_terminal:
            self.truth[pod.uid] = written

    def may_commit(self, posted: Posted) -> bool:
        pod = self.truth.get(posted.pod.uid)
        return posted.arrived and posted.ends > self.clock.seconds and pod is not None and not pod.node

    def commit(self, pod: WatchedPod, node: str, chosen: Assignment) -> None:
        assert not self.truth[pod.uid].node
        self.write(structs.replace(self.truth[pod.uid], node=node, assignment=chosen))

    def list_anew(self, replica: Replica) -> None:
        replica.cluster.updates.replace_pods(self.truth.values(), len(self.log))
        replica.seen = len(self.log)

    @rule(
        kind=st.sampled_from(KINDS), annotations=st.sampled_from(ANNOTATIONS),
        labels=st.sampled_from([{"app": "a"}, {"app": "a"}, {}]), count=st.integers(1, 4), is_seen=st.booleans(),
    )  # fmt: skip
    def create(
        self, kind: dict[str, int | str], annotations: dict[str, str], labels: dict[str, str], count: int, is_seen: bool
    ) -> None:
        for _ in range(count):
            self.count += 1
            main = strategies.container(**kind)
            made = strategies.admit(strategies.pod(main, uid=f"u{self.count}", annotations=annotations))
            made["metadata"]["labels"] = labels
            self.write(PodReader().decoded(made))
        if is_seen:
            self.watch(0, len(self.log))

    @rule(outcomes=st.lists(OUTCOMES, min_size=1, max_size=4), is_late=st.booleans())
    def the_scheduler_places_pods(self, outcomes: list[str], is_late: bool) -> None:
        """kube-scheduler asks for the next pod while the Bindings before it are open."""
        leader = self.leader
        waiting = [pod for pod in leader.cluster.objects.pods.values() if not pod.node]
        for pod, outcome in zip(waiting[-4:], outcomes, strict=False):
            best = leader.best(pod)
            if best is None:
                continue
            if is_late:
                leader.answers.append((pod.uid, best))
            else:
                self.bind(pod.uid, best, outcome)

    @precondition(lambda self: self.leader.answers)
    @rule(outcome=OUTCOMES)
    def the_scheduler_binds_late(self, outcome: str) -> None:
        self.bind(*self.leader.answers.pop(0), outcome)

    def bind(self, uid: str, node: str, outcome: str) -> None:
        leader = self.leader
        known = leader.cluster.objects.pods.get(PodUid(uid), self.truth.get(uid))
        if (
            known is None
            or known.node
            or uid not in self.truth
            or any(posted.pod.uid == uid for posted in self.unknown)
        ):
            return
        chosen = leader.binder._reserve(known, NodeName(node))
        if isinstance(chosen, str):
            return
        if outcome == "refused" or (outcome == "commits" and self.truth[uid].node):
            self.read(Posted(leader, known, node, chosen, 0, arrived=False))
        elif outcome == "commits":
            self.commit(known, node, chosen)
            leader.concluded.append((uid, node))
        else:
            ends = self.clock.seconds + binding_outcome.REQUEST_EXPIRY_S
            self.unknown.append(Posted(leader, known, node, chosen, ends, outcome == "late"))

    @precondition(lambda self: any(self.may_commit(posted) for posted in self.unknown))
    @rule()
    def a_late_binding_is_carried_out(self) -> None:
        posted = next(posted for posted in self.unknown if self.may_commit(posted))
        self.commit(posted.pod, posted.node, posted.assignment)

    @rule()
    def the_pods_of_open_bindings_are_read(self) -> None:
        for posted in [posting for posting in self.unknown if posting.ends <= self.clock.seconds]:
            self.unknown.remove(posted)
            self.read(posted)

    def read(self, posted: Posted) -> None:
        """The replica reads the pod, as it does where a Binding was refused, or may have been carried out."""
        args = BindArgs(posted.pod.name, posted.pod.namespace, posted.pod.uid, NodeName(posted.node))
        outcome = binding_outcome.judge(self.truth.get(posted.pod.uid), args, posted.assignment, is_final=True)
        posted.by.binder._conclude(args, outcome)

    @rule()
    def responses_to_bindings_arrive(self) -> None:
        for replica in self.replicas:
            for uid, node in replica.concluded:
                replica.cluster.reservations.remove_when_seen(PodUid(uid), NodeName(node))
            replica.concluded.clear()

    @rule(which=st.integers(0, 1), events=st.integers(1, 8))
    def watch(self, which: int, events: int) -> None:
        replica = self.replicas[which]
        for kind, pod in self.log[replica.seen : replica.seen + events]:
            replica.seen += 1
            if kind == "upsert":
                replica.cluster.updates.upsert_pod(pod)
            else:
                replica.cluster.updates.delete_pod(pod)

    @rule(which=st.integers(0, 1))
    def the_watch_breaks_off(self, which: int) -> None:
        self.list_anew(self.replicas[which])

    @rule(restarts=st.booleans())
    def the_leader_changes(self, restarts: bool) -> None:
        """The new leader waits until the old one's Bindings are over, and lists."""
        old, new = self.replicas
        self.time_passes(binding_outcome.REQUEST_EXPIRY_S)
        if restarts:
            self.unknown = [posted for posted in self.unknown if posted.by is not old]
            old = Replica(self.clock)
            self.list_anew(old)
        self.replicas = [new, old]
        self.list_anew(new)

    @precondition(lambda self: self.truth)
    @rule(data=st.data(), ends=st.booleans())
    def a_pod_ends_or_is_deleted(self, data: st.DataObject, ends: bool) -> None:
        pod = self.truth.pop(data.draw(st.sampled_from(list(self.truth))))
        if ends and pod.node:
            self.write(structs.replace(pod, is_terminal=True))
        else:
            self.write(pod, "delete")

    @rule(seconds=st.sampled_from([1.0, 40.0, 400.0]))
    def time_passes(self, seconds: float) -> None:
        self.clock.seconds += seconds
        for replica in self.replicas:
            replica.renew_leases()

    def held(self) -> list[tuple[WatchedPod, str, Assignment]]:
        """The pods that hold cards, or may still be bound to them."""
        bound = [(pod, pod.node, pod.assignment) for pod in self.truth.values() if pod.node]
        open_ = [(posted.pod, posted.node, posted.assignment) for posted in self.unknown if self.may_commit(posted)]
        return [(pod, node, held) for pod, node, held in (*bound, *open_) if isinstance(held, Assignment)]

    @invariant()
    def no_card_exceeds_its_capacity(self) -> None:
        for name, cards in CARDS.items():
            node = Node(name, 256, cards)
            asked = [(pod.parsed.request, held) for pod, where, held in self.held() if where == name]
            taken = usage.on_node(node, [(request, held) for request, held in asked if request is not None])
            for card in cards:
                if card.uuid in taken:
                    assert fit.usage_refusal(CardState(card, 256), taken[card.uuid]) is None

    @invariant()
    def pods_that_keep_each_other_off_share_no_card(self) -> None:
        everyone = self.held()
        for pod, _, mine in everyone:
            request = pod.parsed.request
            if request is not None and request.options.anti_affinity:
                others = [other for other in everyone if other[0].uid != pod.uid and other[0].scheduling.labels]
                assert not any(mine.gpus() & held.gpus() for _, _, held in others)

    def teardown(self) -> None:
        """When all is delivered and every Binding is over, each replica counts exactly the pods that run.

        What a pod deleted by force had counts for a while after its deletion was delivered (docs/adr/0146).
        """
        self.time_passes(binding_outcome.REQUEST_EXPIRY_S)
        self.the_pods_of_open_bindings_are_read()
        self.responses_to_bindings_arrive()
        for which in range(len(self.replicas)):
            self.watch(which, len(self.log))
        self.time_passes(HELD_REPORT_LAG_S)
        for replica in self.replicas:
            counted = {uid: node for node in NODES for uid in replica.cluster.objects.pods_on(node)}
            assert counted == {pod.uid: pod.node for pod in self.truth.values() if pod.node}
            assert [reservation.uid for reservation in replica.cluster.reservations] == []
            for name in NODES:
                state = replica.cluster.states.of(name)
                held = [(pod.parsed.request, pod.assignment) for pod in self.truth.values() if pod.node == name]
                known = [(one, two) for one, two in held if one is not None and isinstance(two, Assignment)]
                assert {card.card.uuid: card.usage for card in state.cards if card.usage.slices} == usage.on_node(
                    Node(name, 256, CARDS[name]), known
                )


STEPS = int(os.environ.get("VGPU_MACHINE_EXAMPLES", "400"))  # of 50 steps

TestReplicas = Replicas.TestCase
TestReplicas.settings = settings(max_examples=12, stateful_step_count=30, deadline=None)


class ManySteps(Replicas):
    """20,000 steps."""


TestManySteps = ManySteps.TestCase
TestManySteps.settings = settings(max_examples=STEPS, stateful_step_count=50, deadline=None)
TestManySteps = pytest.mark.slow(pytest.mark.timeout(3600)(TestManySteps))
