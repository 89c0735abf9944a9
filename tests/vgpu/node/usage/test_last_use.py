"""For how long containers have not used their cards: a fake clock, regions and NVML's samples."""

from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vgpu.adapters.nvml.records import BusySamples
from vgpu.domain.formats.region import Activity, CardUse
from vgpu.domain.identifiers import CardUuid, ContainerName, PodUid
from vgpu.node.usage import last_use
from vgpu.node.usage.gpu_time import Use
from vgpu.node.usage.last_use import MAX_GAP_NS, ActiveProcesses, Evidence, LastUse

S = 1_000_000_000
GPU = CardUuid("GPU-0")
NOTEBOOK: Use = (PodUid("uid-a"), ContainerName("main"), GPU)
NEIGHBOUR: Use = (PodUid("uid-b"), ContainerName("main"), GPU)
UNUSED = CardUse(GPU, 0, None, 0, 0, 0)


@dataclass
class Node:
    """A card with a notebook (pid 1) and a neighbour (pid 2) that is busy in each second."""

    accounts: dict[Use, CardUse | None] = field(default_factory=lambda: {NOTEBOOK: None, NEIGHBOUR: UNUSED})
    seconds: dict[Use, float] = field(default_factory=dict)
    busy: set[int] = field(default_factory=lambda: {2})
    card: BusySamples | None = field(default_factory=BusySamples)
    now_ns: int = 1_000_000 * S
    wall_s: int = 1_700_000_000
    uses: LastUse = field(default_factory=LastUse)
    processes: ActiveProcesses = field(default_factory=ActiveProcesses)

    def run(self, seconds: int) -> None:
        for _ in range(seconds):
            self.now_ns += S
            self.wall_s += 1
            self.look()

    def look(self) -> None:
        ends = dict.fromkeys(self.busy, self.wall_s * 1_000_000)
        samples = {GPU: replace(self.card, active=ends)} if self.card else {}
        owners = {(GPU, 1): NOTEBOOK, (GPU, 2): NEIGHBOUR}
        active = self.processes.take(samples)
        young = self.processes.young_on(active, owners, self.now_ns)
        used = {owners[process] for process in active if process in owners}
        self.uses.look(last_use.evidence(self.accounts, self.seconds, samples, used, young), self.now_ns)

    @property
    def idle_s(self) -> float | None:
        found = self.uses.idle_ms().get(NOTEBOOK)
        return None if found is None else found / 1000


def test_a_notebook_beside_a_busy_neighbour_is_idle_and_the_neighbour_is_not() -> None:
    node = Node()
    node.run(3601)
    assert node.idle_s == 3600
    assert node.uses.idle_ms()[NEIGHBOUR] == 0


def test_any_evidence_of_use_ends_the_idle_time() -> None:
    node = Node()
    node.run(101)
    node.busy = {1, 2}
    node.run(1)
    assert node.idle_s == 0
    node.busy = {2}
    node.run(50)
    assert node.idle_s == 50
    node.seconds[NOTEBOOK] = 0.001
    node.run(1)
    assert node.idle_s == 0
    node.run(10)
    launched = Activity(last_launch_at_ns=node.now_ns - 4 * S)
    node.accounts[NOTEBOOK] = replace(UNUSED, activity=launched)
    node.run(1)
    assert node.idle_s == 5


def test_a_kernel_that_is_expected_to_run_on_is_use_now() -> None:
    node = Node()
    node.run(101)
    node.accounts[NOTEBOOK] = replace(UNUSED, busy_until_ns=node.now_ns + 30 * S)
    node.run(29)
    assert node.idle_s == 0
    node.run(11)
    assert node.idle_s == 10


def test_the_time_is_unknown_while_the_card_or_its_driver_does_not_answer_and_begins_again_then() -> None:
    for silent in (None, BusySamples(names_processes=False)):
        node = Node()
        node.run(101)
        node.card = silent
        node.run(1)
        assert node.idle_s is None
        node.card = BusySamples()
        node.run(11)
        assert node.idle_s == 10


def test_a_container_whose_region_cannot_be_read_is_unknown() -> None:
    node = Node()
    node.run(10)
    account = node.accounts.pop(NOTEBOOK)
    node.run(1)
    assert node.idle_s is None
    node.accounts[NOTEBOOK] = account
    node.run(3)
    assert node.idle_s == 2


@pytest.mark.parametrize("jump_ns", [-S, MAX_GAP_NS + 1])
def test_a_plugin_that_did_not_look_for_a_while_has_missed_kernels(jump_ns: int) -> None:
    node = Node()
    node.run(101)
    node.now_ns += jump_ns
    node.look()
    assert node.idle_s == 0


@pytest.mark.parametrize("jump_s", [-7200, 7200])
def test_a_jump_of_the_wall_clock_changes_nothing(jump_s: int) -> None:
    node = Node()
    node.run(101)
    node.wall_s += jump_s
    node.run(100)
    assert node.idle_s == 200


def test_a_sample_that_the_driver_returns_twice_counts_once() -> None:
    node = Node(busy={1, 2})
    node.run(2)
    ends = {1: node.wall_s * 1_000_000}
    for _ in range(5):
        assert node.processes.take({GPU: BusySamples(active=ends)}) == frozenset()


def test_a_process_that_no_container_is_known_for_counts_for_the_only_container() -> None:
    node = Node(accounts={NOTEBOOK: None}, busy={77})
    node.run(2)
    node.seconds[NOTEBOOK] = 0.0
    node.run(58)
    assert node.idle_s == 0
    node.run(30)
    assert node.idle_s == 30  # by now the plugin knows that the process belongs to no container


def test_such_a_process_does_not_count_for_a_container_whose_launches_are_recorded() -> None:
    recorded = replace(UNUSED, activity=Activity(last_launch_at_ns=S))
    node = Node(accounts={NOTEBOOK: recorded, NEIGHBOUR: UNUSED}, busy={77})
    node.run(31)
    assert node.idle_s == 30
    node = Node(accounts={NOTEBOOK: None, NEIGHBOUR: UNUSED}, busy={77})
    node.run(31)
    assert node.idle_s == 0


steps = st.lists(st.tuples(st.integers(0, 30), st.booleans(), st.booleans()), max_size=30)


@given(steps)
def test_idle_time_never_exceeds_the_time_since_the_last_use_or_the_last_gap(
    given_steps: list[tuple[int, bool, bool]],
) -> None:
    """Each step: seconds without a look, whether the container is active, whether its figures are known."""
    uses, now, used = LastUse(), 0, 0
    for seconds, is_active, is_known in given_steps:
        now += seconds * S
        if is_active or not is_known or seconds * S > MAX_GAP_NS:
            used = now
        uses.look({NOTEBOOK: Evidence(0.0 if is_known else None, is_active=is_active)}, now)
        assert uses.idle_ms().get(NOTEBOOK, 0) <= (now - used) // 1_000_000
