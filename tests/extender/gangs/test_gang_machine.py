"""A state machine over gangs: cards never hold more than they have, and no gang is bound in part beyond its deadline.

`truth` has the pods of the API server; the extender sees them through its watch, late. kube-scheduler asks about any
pod at any time, on any nodes, and binds or forgets what it was answered. Bindings fail, or commit late; members are
deleted and created; the watch has gaps; the extender is started anew. A plan is made with a pause after each step, in
which the watch goes on, and other pods are bound.
"""

import asyncio
from collections import deque
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, precondition, rule
from msgspec import structs

from extender.gangs import bind_gate, time_slices
from extender.gangs.deadlines import AGAIN_S
from extender.state.gang_members import GangKey, key_of
from extender.state.objects import WatchedPod
from extender.state.pod_reader import PodReader
from tests import strategies
from tests.extender.conftest import Clock
from tests.extender.gangs.gangs import DEADLINE_S, NODES, SLICES, Extender, node
from vgpu.domain import names
from vgpu.domain.grants import usage
from vgpu.domain.grants.assignment import Assignment
from vgpu.domain.identifiers import NodeName, PodUid

T = TypeVar("T")
OUTCOMES = st.sampled_from(["commit", "commit", "refuse", "unknown"])

LONGEST_STEP_S = 12.0
HOLD_AFTER_S = 5.0
SHARES = ({"gpu": 1}, {"gpu_mem": 256, "gpu_cores": 60}, {"gpu_mem": 512}, {"gpu_mem": 1024, "gpu": 2})


@dataclass
class Posted:
    """A Binding whose outcome the extender does not know."""

    pod: WatchedPod
    node: str
    assignment: Assignment


class Gangs(RuleBasedStateMachine):
    pods = Bundle("pods")
    answers = Bundle("answers")

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.wait_s, bind_gate.WAIT_S = bind_gate.WAIT_S, 0.0  # type: ignore[misc]
        self.slice_s, time_slices.SLICE_S = time_slices.SLICE_S, -1.0  # type: ignore[misc]
        self.pauses = 0
        self.clock = Clock()
        self.truth: dict[str, WatchedPod] = {}
        self.unknown: list[Posted] = []
        self.undelivered: deque[tuple[str, WatchedPod]] = deque()
        self.complete: set[GangKey] = set()  # gangs that were bound as a whole since they had no bound member
        self.part_since: dict[GangKey, float] = {}
        self.version = 0
        self.extender = Extender(self.clock, self, HOLD_AFTER_S)

    def teardown(self) -> None:
        self.tick(0.0)
        for _ in range(40):
            self.tick(LONGEST_STEP_S)
        held = self.extender.cluster.holds.now
        assert held is None or self.extender.tracker.known.watched(held.key).waiting
        known = {posted.pod.uid for posted in self.unknown}
        assert {reservation.uid for reservation in self.extender.cluster.reservations} <= known
        bind_gate.WAIT_S, time_slices.SLICE_S = self.wait_s, self.slice_s  # type: ignore[misc]
        self.loop.close()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.loop.run_until_complete(work)

    def write(self, pod: WatchedPod) -> WatchedPod:
        self.version += 1
        self.truth[pod.uid] = structs.replace(pod, version=self.version)
        self.undelivered.append(("MODIFIED", self.truth[pod.uid]))
        self._note_parts()
        return self.truth[pod.uid]

    async def delete(self, pod: WatchedPod, reason: str, message: str) -> None:  # noqa: ARG002 - the evictor's protocol
        self.remove(pod.uid)

    def remove(self, uid: str) -> None:
        gone = self.truth.pop(uid, None)
        if gone is not None:
            self.version += 1
            self.undelivered.append(("DELETED", structs.replace(gone, version=self.version)))
        self._note_parts()

    @rule(
        target=pods,
        gang=st.sampled_from(["a", "b", ""]),
        size=st.sampled_from([2, 3, 3, 4]),
        share=st.sampled_from(SHARES),
        count=st.integers(1, 4),
    )
    def create(self, gang: str, size: int, share: dict[str, int], count: int) -> str:
        """Create pods; those of one gang agree in size most of the time. Returns the last one's UID."""
        uid = ""
        for _ in range(count):
            uid = f"u{self.version + 1}"
            annotations = {names.GANG: gang, names.GANG_SIZE: str(size)} if gang else {}
            obj = strategies.pod(strategies.container(**share), annotations=annotations, uid=uid)
            del obj["spec"]["nodeName"]
            self.write(PodReader().decoded(strategies.admit(obj)))
        return uid

    @rule(uid=consumes(pods))
    def delete_by_owner(self, uid: str) -> None:
        self.remove(uid)

    @rule(uid=pods)
    def succeed(self, uid: str) -> None:
        pod = self.truth.get(uid)
        if pod is not None and pod.node:
            self.write(structs.replace(pod, is_terminal=True))

    @rule(count=st.integers(1, 8))
    def deliver(self, count: int) -> None:
        for _ in range(min(count, len(self.undelivered))):
            kind, pod = self.undelivered.popleft()
            if kind == "DELETED":
                self.extender.cluster.updates.delete_pod(pod)
            else:
                self.extender.cluster.updates.upsert_pod(pod)

    @rule()
    def list_again(self) -> None:
        """The watch had a gap."""
        self.undelivered.clear()
        self.extender.cluster.updates.replace_pods(list(self.truth.values()), self.version)

    @rule(target=answers, uid=pods, offered=st.sampled_from([NODES, NODES, NODES[:1], NODES[1:]]))
    def filter(self, uid: str, offered: tuple[NodeName, ...]) -> tuple[str, str]:
        """kube-scheduler asks about a pending pod; it takes the last node that fits."""
        return self.asked(uid, offered)

    def asked(self, uid: str, offered: tuple[NodeName, ...]) -> tuple[str, str]:
        pod = self.truth.get(uid)
        if pod is None or pod.node:
            return uid, ""
        answer = self.run(self.extender.filter.judge(pod, offered, self.pause))
        fitting = [bytes(name).decode().strip('"') for name in answer.fitting()]
        progress, key = None, key_of(pod)
        if key is not None:
            progress = self.extender.tracker.known.get(key)
            assert len(fitting) <= 1 or progress.is_started
        if progress is not None and progress.plan is not None and not progress.plan.gate.is_set():
            found = self.extender.tracker.known.watched(key) if key else None
            assert found is not None
            assert len(progress.plan.places) >= found.needs, "a plan has every member or none"
        return uid, fitting[-1] if fitting else ""

    async def pause(self, _seconds: float) -> None:
        """Between two steps of a plan the watch goes on, and a pod of no gang is bound."""
        self.pauses += 1
        if self.pauses % 3 == 0:
            self.deliver(1)
        pods = self.extender.cluster.objects.pods.values()
        alone = [pod for pod in pods if key_of(pod) is None and not pod.node and not pod.is_terminal]
        if self.pauses % 4 == 0 and alone:
            await self._bound(alone[0].uid, NODES[self.pauses // 4 % 2], "commit")

    @rule(answer=consumes(answers), outcome=OUTCOMES)
    def bind(self, answer: tuple[str, str], outcome: str) -> None:
        self.bound(*answer, outcome)

    def bound(self, uid: str, name: str, outcome: str) -> None:
        self.run(self._bound(uid, name, outcome))

    async def _bound(self, uid: str, name: str, outcome: str) -> None:
        pod = self.extender.cluster.objects.pods.get(PodUid(uid))
        if pod is None or pod.node or not name or await self.extender.gate.admit(pod, NodeName(name)):
            return
        chosen = self.extender.binder._reserve(pod, NodeName(name))
        if isinstance(chosen, str):
            return
        current = self.truth.get(uid)
        is_open = current is not None and not current.node and not current.is_terminal
        if any((posted.pod.uid, posted.node) == (uid, name) for posted in self.unknown):
            return  # posted again: only the outcome of the first one counts here
        if current is not None and (current.node, current.assignment) == (name, chosen):
            # a Conflict, and the pod shows this very Binding
            self.extender.cluster.reservations.remove_when_seen(PodUid(uid), NodeName(name))
        elif outcome == "unknown":
            self.unknown.append(Posted(pod, name, chosen))
        elif outcome == "commit" and is_open and current is not None:
            self.write(structs.replace(current, node=name, assignment=chosen, has_started=True))
            self.extender.cluster.reservations.remove_when_seen(PodUid(uid), NodeName(name))
        else:
            self.extender.cluster.reservations.remove(PodUid(uid), NodeName(name))

    @precondition(lambda self: self.unknown)
    @rule(commits=st.booleans())
    def resolve(self, *, commits: bool) -> None:
        """The outcome of the oldest Binding becomes known."""
        posted = self.unknown.pop(0)
        current = self.truth.get(posted.pod.uid)
        if commits and current is not None and not current.node and not current.is_terminal:
            self.write(structs.replace(current, node=posted.node, assignment=posted.assignment, has_started=True))
            self.extender.cluster.reservations.remove_when_seen(posted.pod.uid, NodeName(posted.node))
        else:
            self.extender.cluster.reservations.remove(posted.pod.uid, NodeName(posted.node))

    @rule(rounds=st.integers(1, 2), outcomes=st.lists(OUTCOMES, min_size=1, max_size=4))
    def schedule(self, rounds: int, outcomes: list[str]) -> None:
        """kube-scheduler tries every pending pod, and then binds what was answered."""
        self.deliver(len(self.undelivered) or 1)
        for _ in range(rounds):
            waiting = [uid for uid, pod in self.truth.items() if not pod.node and not pod.is_terminal]
            answers = [self.asked(uid, NODES) for uid in waiting]
            for number, (uid, name) in enumerate(answers):
                self.bound(uid, name, outcomes[number % len(outcomes)])

    @rule(seconds=st.floats(0.0, LONGEST_STEP_S))
    def tick(self, seconds: float) -> None:
        """Time passes; the watch catches up."""
        self.deliver(len(self.undelivered) or 1)
        self.clock.seconds += seconds
        self.run(self.extender.deadlines.look())
        self.deliver(len(self.undelivered) or 1)

    @precondition(lambda self: not self.unknown)
    @rule()
    def restart(self) -> None:
        """A new process lists; what the last one had in flight is known by then (ADR 23)."""
        self.extender = Extender(self.clock, self, HOLD_AFTER_S)
        self.list_again()
        self.run(self.extender.deadlines.look())
        self.part_since = dict.fromkeys(self.part_since, self.clock.seconds)

    @invariant()
    def no_card_holds_more_than_it_has(self) -> None:
        for name in NODES:
            held: list[Any] = [
                (pod.parsed.request, pod.assignment)
                for pod in self.truth.values()
                if pod.node == name and not pod.is_terminal
            ]
            held += [
                (p.pod.parsed.request, p.assignment) for p in self.unknown if p.node == name and not self._is_bound(p)
            ]
            for taken in usage.on_node(node(name), held).values():
                assert taken.slices <= SLICES
                assert taken.cores <= 100
                assert taken.wholes + (taken.shares > 0) <= 1

    def _is_bound(self, posted: Posted) -> bool:
        known = self.truth.get(posted.pod.uid)
        return known is None or bool(known.node)

    @invariant()
    def no_part_of_a_gang_is_bound_beyond_the_deadline(self) -> None:
        for key, since in self.part_since.items():
            assert self.clock.seconds - since <= DEADLINE_S + LONGEST_STEP_S + AGAIN_S, (key, self.truth)

    def _note_parts(self) -> None:
        """Note since when the gangs of the truth are bound in part, and which were bound as a whole."""
        members: dict[GangKey, list[WatchedPod]] = {}
        for pod in self.truth.values():
            key = key_of(pod)
            if key is not None and not pod.is_terminal:
                members.setdefault(key, []).append(pod)
        for key in members.keys() | self.part_since.keys() | self.complete:
            pods = members.get(key, [])
            bound = [pod for pod in pods if pod.node]
            sizes = {pod.parsed.gang.size for pod in pods if not pod.node and pod.parsed.gang} or {
                pod.parsed.gang.size for pod in bound if pod.parsed.gang
            }
            if not bound:
                self.complete.discard(key)
                self.part_since.pop(key, None)
            elif len(sizes) == 1 and len(bound) >= max(size or 0 for size in sizes):
                self.complete.add(key)
                self.part_since.pop(key, None)
            elif key not in self.complete:
                self.part_since.setdefault(key, self.clock.seconds)


def test_a_pod_that_is_bound_while_a_plan_is_made_is_asked_to_be_bound_again() -> None:
    machine = Gangs()
    machine.create(count=4, gang="", share={"gpu": 1}, size=2)
    machine.create(count=2, gang="a", share={"gpu_mem": 1024, "gpu": 2}, size=2)
    machine.schedule(outcomes=["commit"], rounds=1)
    machine.no_card_holds_more_than_it_has()
    machine.teardown()


class ManyGangs(Gangs):
    """Runs for longer."""


TestGangs = Gangs.TestCase
TestGangs = pytest.mark.heavy(TestGangs)
TestGangs.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
TestManyGangs = ManyGangs.TestCase
TestManyGangs.settings = settings(max_examples=400, stateful_step_count=50, deadline=None)
TestManyGangs = pytest.mark.slow(pytest.mark.timeout(300)(TestManyGangs))
