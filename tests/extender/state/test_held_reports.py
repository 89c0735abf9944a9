"""The device plugin's report of held slices: it corrects the accounts, except where it is older than a pod's end.

A state machine writes pods, holders that no account knows, and reports at one API server, with one counter of versions.
The extender sees pods and GPUNodes through two watches, each in order and as late as the machine likes.
"""

import itertools
from collections import deque

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from msgspec import structs

from extender.state.cluster import Cluster
from extender.state.objects import GpuNode, WatchedPod
from extender.state.pod_reader import PodReader
from extender.state.updates import HELD_REPORT_LAG_S
from tests import strategies
from tests.extender.conftest import Clock
from vgpu.domain.cards.device import Node
from vgpu.domain.grants.assignment import Assignment, Grant
from vgpu.domain.identifiers import CardUuid, ContainerName, NodeName

NODE = NodeName("n1")
SLICES = 2


OLD, NEW, START, END = "old report", "new report", "start", "end"


def in_order(events: tuple[str, ...]) -> bool:
    return events.index(OLD) < events.index(NEW) and events.index(START) < events.index(END)


def running(uid: str, slices: int, version: int) -> WatchedPod:
    pod = PodReader().decoded(
        strategies.admit(strategies.pod(strategies.container(gpu_mem=slices * 256), uid=uid, node=NODE))
    )
    chosen = Assignment({ContainerName("main"): (Grant(CardUuid("GPU-0"), slices * 256),)})
    return structs.replace(pod, assignment=chosen, version=version, has_started=True)


def report(held: int, version: int) -> GpuNode:
    cards = (strategies.card(0, SLICES * 256, held_slices=held),)
    return GpuNode(Node(NODE, 256, cards), "i", "2026-01-01T00:00:00Z", version)


def test_a_gpunode_that_is_created_again_beside_running_pods_has_no_status_yet() -> None:
    """Such a GPUNode says no size of slices: the extender ended with ZeroDivisionError, at each start again."""
    cluster = Cluster(256, Clock())
    cluster.updates.upsert_gpunodes(report(0, 1))
    cluster.updates.upsert_pod(running("u1", 1, 2))
    assert cluster.states.of(NODE).cards[0].taken_slices == 1
    cluster.updates.delete_gpunodes(NODE)
    cluster.updates.upsert_gpunodes(GpuNode(Node(NODE, 0, ()), "j", "2026-01-01T00:00:00Z", 4))
    assert cluster.states.of(NODE).cards == ()
    cluster.rows.write()
    cluster.updates.upsert_gpunodes(GpuNode(report(0, 5).node, "j", "2026-01-01T00:00:00Z", 5))
    assert cluster.states.of(NODE).cards[0].taken_slices == 1


@pytest.mark.parametrize(
    "order", [permutation for permutation in itertools.permutations([OLD, NEW, START, END]) if in_order(permutation)]
)
@pytest.mark.parametrize("listed_after", [None, 0, 1, 2, 3])
def test_a_report_that_is_newer_than_an_end_counts_in_full(order: tuple[str, ...], listed_after: int | None) -> None:
    """A pod held the whole card, ended, and an unknown holder took the card: in any order it is full."""
    cluster = Cluster(256, Clock())
    cluster.updates.upsert_gpunodes(report(0, 1))
    pod = running("u1", SLICES, 2)
    for n, event in enumerate(order):
        if event == START:
            cluster.updates.upsert_pod(pod)
        elif event == END:
            cluster.updates.delete_pod(structs.replace(pod, version=4, is_terminal=True))
        else:
            cluster.updates.upsert_gpunodes(report(SLICES, 3 if event == OLD else 5))
        if n == listed_after:
            cluster.updates.replace_pods([], 6)
    assert cluster.states.of(NODE).cards[0].free_slices == 0


def test_a_reported_holder_and_a_pod_that_was_bound_later_add_up() -> None:
    cluster = Cluster(256, Clock())
    cluster.updates.upsert_gpunodes(report(1, 3))
    cluster.updates.upsert_pod(running("u1", 1, 4))
    assert cluster.states.of(NODE).cards[0].free_slices == 0


def test_a_pod_in_the_place_of_one_that_ended_between_two_reports_counts_once() -> None:
    """The next report is equal to the last one, so it is not written, and the last one stays as old as it is."""
    clock = Clock()
    cluster = Cluster(256, clock)
    cluster.updates.upsert_pod(running("u1", 1, 1))
    cluster.updates.upsert_gpunodes(report(1, 2))
    cluster.updates.upsert_pod(running("u2", 1, 3))
    cluster.updates.delete_pod(structs.replace(running("u1", 1, 4), is_terminal=True))
    clock.seconds += HELD_REPORT_LAG_S
    assert cluster.states.of(NODE).cards[0].free_slices == SLICES - 1


def test_the_end_of_a_pod_that_no_report_has_shown_corrects_no_report() -> None:
    cluster = Cluster(256, Clock())
    cluster.updates.upsert_gpunodes(report(SLICES, 3))
    cluster.updates.upsert_pod(running("u1", 1, 4))
    cluster.updates.delete_pod(structs.replace(running("u1", 1, 5), is_terminal=True))
    assert cluster.states.of(NODE).cards[0].free_slices == 0


@pytest.mark.parametrize("reported", [1, 3])
def test_a_pod_deleted_by_force_counts_until_its_node_reports_otherwise(reported: int) -> None:
    """Its processes may run on, whether the report that is there has seen them or not."""
    clock = Clock()
    cluster = Cluster(256, clock)
    cluster.updates.upsert_gpunodes(report(SLICES if reported > 2 else 0, reported))
    cluster.updates.upsert_pod(running("u1", SLICES, 2))
    cluster.updates.delete_pod(running("u1", SLICES, 4))
    assert cluster.states.of(NODE).cards[0].free_slices == 0
    cluster.updates.upsert_gpunodes(report(SLICES, 5))
    clock.seconds += 1000
    assert cluster.states.of(NODE).cards[0].free_slices == 0
    cluster.updates.upsert_gpunodes(report(0, 6))
    assert cluster.states.of(NODE).cards[0].free_slices == SLICES


def test_a_pod_deleted_by_force_that_no_node_has_started_is_free_after_a_while() -> None:
    clock = Clock()
    cluster = Cluster(256, clock)
    cluster.updates.upsert_gpunodes(report(0, 1))
    cluster.updates.upsert_pod(running("u1", SLICES, 2))
    cluster.updates.delete_pod(running("u1", SLICES, 3))
    clock.seconds += HELD_REPORT_LAG_S
    assert cluster.states.of(NODE).cards[0].free_slices == SLICES


def test_a_node_that_is_gone_holds_nothing_for_a_pod_deleted_by_force() -> None:
    cluster = Cluster(256, Clock())
    cluster.updates.upsert_gpunodes(report(SLICES, 1))
    cluster.updates.upsert_pod(running("u1", SLICES, 2))
    cluster.updates.delete_pod(running("u1", SLICES, 3))
    cluster.updates.delete_gpunodes(NODE)
    cluster.updates.upsert_gpunodes(report(0, 4))
    assert cluster.states.of(NODE).cards[0].free_slices == SLICES


class HeldReports(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.clock = Clock()
        self.cluster = Cluster(256, self.clock)
        self.version = 1
        self.pods: dict[str, int] = {}
        self.unknown: dict[str, int] = {}
        self.departed: dict[str, int] = {}  # deleted by force, and still running
        self.pod_events: deque[tuple[str, WatchedPod]] = deque()
        self.reports: deque[GpuNode] = deque()
        self.lasting: dict[str, int] = {}  # holders that no account knows, at the time of the newest report, until now
        self.is_report_true = True  # whether nothing has changed since the newest report
        self.has_unknown = False  # whether a holder that no account knows has ever been there
        self.has_departed = False  # whether a pod has ever been deleted by force
        self.is_relisted = False  # a list does not say when a pod ended, so an old report may refuse then
        self.count = 0
        self.may_disturb = False
        self.cluster.updates.upsert_gpunodes(report(0, 1))

    def held(self) -> int:
        return sum(self.pods.values()) + sum(self.unknown.values()) + sum(self.departed.values())

    def next_version(self) -> int:
        self.version += 1
        return self.version

    def shown(self) -> int:
        return self.cluster.states.of(NODE).cards[0].taken_slices

    @initialize(may_disturb=st.booleans())
    def draw_whether_to_relist(self, may_disturb: bool) -> None:
        self.may_disturb = may_disturb

    @rule(slices=st.integers(1, SLICES))
    def a_pod_starts(self, slices: int) -> None:
        if self.held() + slices <= SLICES:
            self.count += 1
            uid = f"u{self.count}"
            self.pods[uid] = slices
            self.is_report_true = False
            self.pod_events.append(("upsert", running(uid, slices, self.next_version())))

    @rule(slices=st.integers(1, SLICES))
    def a_holder_that_no_account_knows_starts(self, slices: int) -> None:
        if self.held() + slices <= SLICES:
            self.count += 1
            self.unknown[f"x{self.count}"] = slices
            self.is_report_true = False
            self.has_unknown = True

    @precondition(lambda self: self.unknown)
    @rule()
    def an_unknown_holder_ends(self) -> None:
        self.lasting.pop(self.unknown.popitem()[0], None)
        self.is_report_true = False

    @precondition(lambda self: self.pods)
    @rule(data=st.data(), is_deleted=st.booleans())
    def a_pod_ends(self, data: st.DataObject, is_deleted: bool) -> None:
        uid = data.draw(st.sampled_from(list(self.pods)))
        last = structs.replace(running(uid, self.pods.pop(uid), self.next_version()), is_terminal=True)
        self.is_report_true = False
        self.pod_events.append(("delete" if is_deleted else "upsert", last))

    @precondition(lambda self: self.pods)
    @rule(data=st.data())
    def a_pod_is_deleted_by_force(self, data: st.DataObject) -> None:
        uid = data.draw(st.sampled_from(list(self.pods)))
        self.departed[uid] = self.pods.pop(uid)
        self.has_departed = True
        self.pod_events.append(("delete", running(uid, self.departed[uid], self.next_version())))

    @precondition(lambda self: self.departed)
    @rule()
    def the_processes_of_a_deleted_pod_end(self) -> None:
        self.departed.popitem()
        self.is_report_true = False

    @rule(slices=st.integers(1, SLICES))
    def a_pod_is_refused_by_the_kubelet(self, slices: int) -> None:
        """The pod was bound, and the devices were not free: it fails and has held nothing."""
        self.count += 1
        bound = structs.replace(running(f"u{self.count}", slices, self.next_version()), has_started=False)
        self.pod_events.append(("upsert", bound))
        self.pod_events.append(("upsert", structs.replace(bound, version=self.next_version(), is_terminal=True)))

    @rule()
    def the_plugin_reports(self) -> None:
        self.reports.append(report(self.held(), self.next_version()))
        self.is_report_true = True
        self.lasting = dict(self.unknown)

    @precondition(lambda self: self.pod_events)
    @rule()
    def a_pod_is_watched(self) -> None:
        kind, pod = self.pod_events.popleft()
        if kind == "upsert":
            self.cluster.updates.upsert_pod(pod)
        else:
            self.cluster.updates.delete_pod(pod)

    @precondition(lambda self: self.reports)
    @rule()
    def a_report_is_watched(self) -> None:
        self.cluster.updates.upsert_gpunodes(self.reports.popleft())

    @rule()
    def everything_is_watched(self) -> None:
        while self.pod_events:
            self.a_pod_is_watched()
        while self.reports:
            self.a_report_is_watched()

    @precondition(lambda self: self.may_disturb)
    @rule()
    def relist(self) -> None:
        self.pod_events.clear()
        self.is_relisted = True
        version = self.next_version()
        self.cluster.updates.replace_pods([running(uid, slices, version) for uid, slices in self.pods.items()], version)

    @precondition(lambda self: self.may_disturb)
    @rule(seconds=st.sampled_from([1.0, HELD_REPORT_LAG_S]))
    def time_passes(self, seconds: float) -> None:
        self.clock.seconds += seconds

    @invariant()
    def a_true_report_counts_at_once(self) -> None:
        """Every event has arrived, and nothing has changed since the newest report: nothing that is held looks free."""
        if not self.pod_events and not self.reports and self.is_report_true:
            assert self.shown() >= self.held()

    @invariant()
    def reported_holders_and_later_pods_add_up(self) -> None:
        """A reported holder that no account knows does not vanish behind pods that were bound or ended since."""
        is_known = not self.is_relisted and self.clock.seconds < 1000 + HELD_REPORT_LAG_S
        if is_known and not self.pod_events and not self.reports:
            assert self.shown() >= min(SLICES, sum(self.lasting.values()) + sum(self.pods.values()))

    @invariant()
    def what_deleted_pods_hold_is_not_free(self) -> None:
        """As soon as the deletions are watched, and before any report is."""
        is_known = not self.is_relisted and self.clock.seconds < 1000 + HELD_REPORT_LAG_S
        if is_known and not self.has_unknown and not self.pod_events and not self.reports:
            assert self.shown() >= self.held()

    @invariant()
    def an_old_report_refuses_nothing_that_ended_after_it(self) -> None:
        """kube-scheduler asks at a pod's end, once: without unknown holders the accounts alone must decide then."""
        is_late = self.is_relisted or self.clock.seconds >= 1000 + HELD_REPORT_LAG_S
        if not is_late and not self.has_departed and not self.pod_events and not self.reports and not self.has_unknown:
            assert self.shown() <= sum(self.pods.values())


TestHeldReports = HeldReports.TestCase
TestHeldReports.settings = settings(max_examples=300, stateful_step_count=25, deadline=None)
TestHeldReports = pytest.mark.timeout(120)(TestHeldReports)
TestHeldReports = pytest.mark.heavy(TestHeldReports)
