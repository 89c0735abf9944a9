"""A state machine over the accounting: pods that are bound, or may still be bound, never exceed a card's capacity.

`truth` has the pods of the API server. The extender sees them only through its watch: Bindings commit early, late or
never, events arrive late and in order, and a list replaces the watched state.
"""

from collections import deque
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from extender import binding_outcome, objects
from extender.bind import Binder
from extender.cluster import Cluster
from extender.filter import Filter
from extender.objects import GpuNode, KubeNode, Lease, Pod
from extender.wire import BindArgs
from tests import strategies
from tests.extender.conftest import Clock, Leader
from vgpu import names
from vgpu.assignment import Assignment
from vgpu.device import Node
from vgpu.placement.policies import DefaultPolicies

NODE = "n1"
SLICES = 4


@dataclass
class Posted:
    """A Binding without a response; if it has arrived, the server may carry it out until `ends`."""

    pod: Pod
    assignment: Assignment
    ends: float
    arrived: bool


class Accounting(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.clock = Clock()
        self.cluster = Cluster(256, self.clock)
        cards = (strategies.card(0, SLICES * 256),)
        self.cluster.upsert_gpunodes(GpuNode(Node(NODE, 256, cards), "i", "2026-01-01T00:00:00Z"))
        self.cluster.objects.nodes[NODE] = KubeNode(NODE, {names.SLICE: SLICES, names.CARD: 1})
        client: Any = None  # never called: the test reserves and concludes without an API server
        self.binder = Binder(client, self.cluster, Filter(self.cluster, DefaultPolicies()), Leader())
        self.truth: dict[str, Pod] = {}
        self.unknown: list[Posted] = []
        self.undelivered: deque[tuple[str, Pod]] = deque()
        self.count = 0
        self.renew_node_lease()

    def renew_node_lease(self) -> None:
        self.cluster.leases.put(Lease(names.node_lease(NODE), NODE, str(self.clock.seconds), 3))

    def queue_event(self, kind: str, pod: Pod) -> None:
        self.undelivered.append((kind, pod))

    def may_commit(self, posted: Posted) -> bool:
        pod = self.truth.get(posted.pod.uid)
        return posted.arrived and posted.ends > self.clock.seconds and pod is not None and not pod.node

    def commit(self, pod: Pod, chosen: Assignment) -> None:
        self.truth[pod.uid] = replace(pod, node=NODE, assignment=chosen)
        self.queue_event("upsert", self.truth[pod.uid])

    @rule(memory=st.sampled_from([300, 512, 1024]), whole=st.booleans())
    def create(self, memory: int, whole: bool) -> None:
        self.count += 1
        main = strategies.container(gpu=1) if whole else strategies.container(gpu_mem=memory)
        pod = objects.pod(strategies.admit(strategies.pod(main, uid=f"u{self.count}")))
        self.truth[pod.uid] = pod
        self.cluster.upsert_pod(pod)

    @precondition(lambda self: any(not pod.node for pod in self.truth.values()))
    @rule(data=st.data(), outcome=st.sampled_from(["commits", "refused", "lost", "late", "late"]))
    def bind(self, data: st.DataObject, outcome: str) -> None:
        uid = data.draw(st.sampled_from([uid for uid, pod in self.truth.items() if not pod.node]))
        pod = self.truth[uid]
        if (
            uid not in self.cluster.objects.pods
            or self.cluster.objects.pods[uid].node
            or any(p.pod.uid == uid for p in self.unknown)
        ):
            return
        chosen = self.binder._reserve(pod, NODE)
        if isinstance(chosen, str):
            return
        if outcome == "commits":
            self.commit(pod, chosen)
            self.cluster.release_when_seen(uid, NODE)
        elif outcome == "refused":
            self.cluster.release(uid, NODE)
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

    @precondition(lambda self: self.truth)
    @rule(data=st.data())
    def a_pod_is_modified(self, data: st.DataObject) -> None:
        """A label changes: the watch shows the pod's present state again."""
        self.queue_event("upsert", data.draw(st.sampled_from(list(self.truth.values()))))

    @precondition(lambda self: self.undelivered)
    @rule()
    def watch(self) -> None:
        kind, pod = self.undelivered.popleft()
        if kind == "upsert":
            self.cluster.upsert_pod(pod)
        else:
            self.cluster.delete_pod(pod.uid)

    @rule()
    def relist(self) -> None:
        self.undelivered.clear()
        for uid in self.cluster.objects.pods.keys() - self.truth.keys():
            self.cluster.delete_pod(uid)
        for pod in self.truth.values():
            self.cluster.upsert_pod(pod)

    @precondition(lambda self: self.truth)
    @rule(data=st.data(), ends=st.booleans())
    def a_pod_ends_or_is_deleted(self, data: st.DataObject, ends: bool) -> None:
        uid = data.draw(st.sampled_from(list(self.truth)))
        pod = self.truth.pop(uid)
        if ends and pod.node:
            self.truth[uid] = replace(pod, is_terminal=True)
            self.queue_event("upsert", self.truth[uid])
        else:
            self.queue_event("delete", pod)

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


TestAccounting = Accounting.TestCase
TestAccounting.settings = settings(max_examples=300, stateful_step_count=30, deadline=None)
TestAccounting = pytest.mark.timeout(120)(TestAccounting)
