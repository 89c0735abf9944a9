"""A state machine over the accounting: pods that are bound, or may still be bound, never exceed a card's capacity, and
nothing stays reserved for a pod that is gone.

`truth` has the pods of the API server. The extender sees them only through its watch and by reading a pod to be bound:
Bindings commit early, late or never, events arrive late and in order, and a list, taken earlier or now, replaces the
watched state.
"""

from collections import deque
from dataclasses import dataclass
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
from extender.verbs.bind import Binder
from extender.verbs.filter import Filter
from tests import strategies
from tests.extender.conftest import Clock, Leader
from tests.extender.gangs import gangs
from vgpu.domain import names
from vgpu.domain.cards.device import Node
from vgpu.domain.grants.assignment import Assignment
from vgpu.domain.identifiers import NodeName, PodUid
from vgpu.placement.policies import DefaultPolicies

NODE = NodeName("n1")
SLICES = 4


@dataclass
class Posted:
    """A Binding without a response; if it has arrived, the server may carry it out until `ends`."""

    pod: WatchedPod
    assignment: Assignment
    ends: float
    arrived: bool


class Accounting(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.clock = Clock()
        self.cluster = Cluster(256, self.clock)
        cards = (strategies.card(0, SLICES * 256),)
        self.cluster.updates.upsert_gpunodes(GpuNode(Node(NODE, 256, cards), "i", "2026-01-01T00:00:00Z"))
        self.cluster.updates.upsert_nodes(KubeNode(NODE, {names.SLICE: SLICES, names.CARD: 1}))
        client: Any = None  # never called: the test reserves and concludes without an API server
        self.binder = Binder(
            client,
            self.cluster.objects.pods,
            PodReader(),
            self.cluster.reservations,
            Filter(self.cluster, DefaultPolicies()),
            Leader(),
            Feed(NO_RECORDER, {}, lambda: 0, ""),
            BindGate(gangs.tracker(self.cluster), Leader()),
        )
        self.truth: dict[str, WatchedPod] = {}
        self.unknown: list[Posted] = []
        self.undelivered: deque[tuple[str, WatchedPod]] = deque()
        self.listed: tuple[int, dict[str, WatchedPod]] | None = None
        self.concluded: list[str] = []  # bound, but the extender does not know yet
        self.version = 0
        self.count = 0
        self.renew_node_lease()

    def renew_node_lease(self) -> None:
        self.cluster.leases.put(WatchedLease(names.node_lease(NODE), NODE, str(self.clock.seconds), 3))

    def write(self, pod: WatchedPod) -> WatchedPod:
        """Store a pod with the next resourceVersion, and queue the event."""
        self.version += 1
        self.truth[pod.uid] = structs.replace(pod, version=self.version)
        self.undelivered.append(("upsert", self.truth[pod.uid]))
        return self.truth[pod.uid]

    def may_commit(self, posted: Posted) -> bool:
        pod = self.truth.get(posted.pod.uid)
        return posted.arrived and posted.ends > self.clock.seconds and pod is not None and not pod.node

    def commit(self, pod: WatchedPod, chosen: Assignment) -> None:
        self.write(structs.replace(pod, node=NODE, assignment=chosen))

    @rule(memory=st.sampled_from([300, 512, 1024]), whole=st.booleans())
    def create(self, memory: int, whole: bool) -> None:
        self.count += 1
        main = strategies.container(gpu=1) if whole else strategies.container(gpu_mem=memory)
        self.write(PodReader().decoded(strategies.admit(strategies.pod(main, uid=f"u{self.count}"))))

    @precondition(lambda self: any(not pod.node for pod in self.truth.values()))
    @rule(data=st.data(), outcome=st.sampled_from(["commits", "refused", "lost", "late", "late"]))
    def bind(self, data: st.DataObject, outcome: str) -> None:
        uid = data.draw(st.sampled_from([uid for uid, pod in self.truth.items() if not pod.node]))
        pod = self.cluster.objects.pods.get(PodUid(uid), self.truth[uid])  # a pod that the watch has not shown is read
        if pod.node or any(p.pod.uid == uid for p in self.unknown):
            return
        chosen = self.binder._reserve(pod, NODE)
        if isinstance(chosen, str):
            return
        if outcome == "commits":
            self.commit(pod, chosen)
            self.concluded.append(uid)
        elif outcome == "refused":
            self.cluster.reservations.remove(PodUid(uid), NODE)
        else:
            ends = self.clock.seconds + binding_outcome.REQUEST_EXPIRY_S
            self.unknown.append(Posted(pod, chosen, ends, outcome == "late"))

    @precondition(lambda self: any(self.may_commit(posted) for posted in self.unknown))
    @rule()
    def a_late_binding_is_carried_out(self) -> None:
        posted = next(posted for posted in self.unknown if self.may_commit(posted))
        self.commit(posted.pod, posted.assignment)

    @precondition(lambda self: any(posted.ends <= self.clock.seconds for posted in self.unknown))
    @rule()
    def the_pod_is_read(self) -> None:
        """`OutcomePoller` reads the pod at any time after the expiry, and sees the API server's state."""
        posted = next(posted for posted in self.unknown if posted.ends <= self.clock.seconds)
        self.unknown.remove(posted)
        args = BindArgs(posted.pod.name, posted.pod.namespace, posted.pod.uid, NODE)
        outcome = binding_outcome.judge(self.truth.get(posted.pod.uid), args, posted.assignment, is_final=True)
        self.binder._conclude(args, outcome)

    @precondition(lambda self: self.concluded)
    @rule()
    def the_response_to_a_binding_arrives(self) -> None:
        self.cluster.reservations.remove_when_seen(PodUid(self.concluded.pop(0)), NODE)

    @precondition(lambda self: self.truth)
    @rule(data=st.data())
    def a_pod_is_modified(self, data: st.DataObject) -> None:
        """A label changes: the watch shows the pod's present state again."""
        self.write(data.draw(st.sampled_from(list(self.truth.values()))))

    @precondition(lambda self: self.undelivered and self.listed is None)
    @rule()
    def watch(self) -> None:
        kind, pod = self.undelivered.popleft()
        if kind == "upsert":
            self.cluster.updates.upsert_pod(pod)
        else:
            self.cluster.updates.delete_pod(pod)

    @precondition(lambda self: self.listed is None)
    @rule()
    def the_server_answers_a_list(self) -> None:
        """The watch has ended: no event follows before the list has arrived."""
        self.undelivered.clear()
        self.listed = self.version, dict(self.truth)

    @precondition(lambda self: self.listed is not None)
    @rule()
    def the_list_arrives(self) -> None:
        assert self.listed is not None
        version, pods = self.listed
        self.listed = None
        self.cluster.updates.replace_pods(pods.values(), version)

    @precondition(lambda self: self.truth)
    @rule(data=st.data(), ends=st.booleans())
    def a_pod_ends_or_is_deleted(self, data: st.DataObject, ends: bool) -> None:
        uid = data.draw(st.sampled_from(list(self.truth)))
        pod = self.truth.pop(uid)
        if ends and pod.node:
            self.write(structs.replace(pod, is_terminal=True))
        else:
            self.version += 1
            self.undelivered.append(("delete", structs.replace(pod, version=self.version)))

    @rule(seconds=st.sampled_from([1.0, 40.0, 400.0]))
    def time_passes(self, seconds: float) -> None:
        """The watch may lag for any time."""
        self.clock.seconds += seconds
        self.renew_node_lease()

    @invariant()
    def no_card_exceeds_its_capacity(self) -> None:
        held = [(pod.assignment, pod) for pod in self.truth.values() if pod.node and not pod.is_terminal]
        held += [(posted.assignment, posted.pod) for posted in self.unknown if self.may_commit(posted)]
        slices = {"GPU-0": 0}
        for chosen, _ in held:
            assert isinstance(chosen, Assignment)
            for (grant,) in chosen.containers.values():
                slices[grant.gpu] += SLICES if grant.whole else -(-grant.memory_mib // 256)
        assert max(slices.values()) <= SLICES

    @invariant()
    def nothing_stays_reserved_for_a_pod_that_is_gone(self) -> None:
        """Where every event has arrived and no Binding is open, the extender counts exactly the pods that run."""
        if self.undelivered or self.unknown or self.concluded or self.listed is not None:
            return
        running = {uid for uid, pod in self.truth.items() if pod.node and not pod.is_terminal}
        assert set(self.cluster.objects.pods_on(NODE)) == running
        assert [reservation.uid for reservation in self.cluster.reservations] == []


TestAccounting = Accounting.TestCase
TestAccounting.settings = settings(max_examples=300, stateful_step_count=30, deadline=None)
TestAccounting = pytest.mark.timeout(120)(TestAccounting)
TestAccounting = pytest.mark.heavy(TestAccounting)
