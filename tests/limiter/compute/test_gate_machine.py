"""The launch gate's state machine, on random walks of a program's threads, beside the gate as it was before."""

import ctypes
from collections.abc import Callable
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from limiter import build
from tests.limiter.compute.gate_structures import Event, Machine, Phase, View
from tests.limiter.compute.gate_twin import Twin
from tests.limiter.compute.gate_walk import Fault, Plan, Walk
from tests.limiter.conftest import compile_as_limiter

SOURCE = build.SOURCES / "compute/gate/gate_machine.c"
MANY = 10_000

PLANS = st.builds(
    Plan,
    launches=st.lists(st.integers(1, 8), min_size=1, max_size=3).map(tuple),
    waits=st.lists(st.integers(1, 6), max_size=2).map(tuple),
    ends=st.lists(st.sampled_from(("stream", "context", "drain", "asked")), max_size=4).map(tuple),
    may_queue=st.booleans(),
    is_bound=st.booleans(),
    is_slow=st.booleans(),
)


@pytest.fixture(scope="session")
def machine(pure: ctypes.CDLL) -> Machine:
    return Machine(pure)


def plan_of(random: Random) -> Plan:
    """A plan with all kinds of threads."""
    return Plan(
        launches=tuple(random.randint(1, 8) for _ in range(random.randint(1, 3))),
        waits=tuple(random.randint(1, 6) for _ in range(random.randint(0, 2))),
        ends=tuple(random.choice(("stream", "context", "drain", "asked")) for _ in range(random.randint(0, 4))),
        may_queue=random.random() < 0.8,
        is_bound=random.random() < 0.5,
        is_slow=random.random() < 0.5,
    )


def walk(machine: Machine, seed: int, *, twin: Twin | None = None) -> Walk:
    random = Random(seed)
    made = Walk(machine, plan_of(random), random, twin)
    made.run()
    return made


@given(plan=PLANS, seed=st.integers(0, 2**32))
def test_every_launch_is_admitted_and_every_wait_has_a_waker(machine: Machine, plan: Plan, seed: int) -> None:
    Walk(machine, plan, Random(seed), Twin()).run()


@pytest.mark.slow
@pytest.mark.timeout(1800)  # 50 s of processor time
@settings(max_examples=MANY, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(plan=PLANS, seed=st.integers(0, 2**32))
def test_ten_thousand_walks(machine: Machine, plan: Plan, seed: int) -> None:
    Walk(machine, plan, Random(seed), Twin()).run()


@pytest.mark.heavy
def test_every_phase_and_every_event_is_reached(machine: Machine) -> None:
    reached = {seen for seed in range(400) for seen in walk(machine, seed, twin=Twin()).seen}
    assert {phase for phase, _ in reached} == {*Phase}
    assert {event for _, event in reached} == {*Event}


@pytest.mark.parametrize("phase", Phase)
@pytest.mark.parametrize("event", Event)
def test_an_event_leads_to_a_phase_that_exists(machine: Machine, phase: Phase, event: Event) -> None:
    """Also where the event cannot happen: a thread that comes late finds the gate as others left it."""
    step = machine.step(View(phase=phase, due_at=2**64 - 1), event)
    assert step.phase in {*Phase}
    if Phase(step.phase) is phase and event is not Event.HOST_WAITS:
        assert not step.wakes


FAULTS = {
    "double open: a launch opens a turn while the gate's thread waits for one": (
        "        case GATE_SHUT:\n        case GATE_DRAINING:\n",
        "        case GATE_SHUT:\n        case GATE_SHUT_ASKED:\n        case GATE_DRAINING:\n",
    ),
    "double open: a launch opens a turn beside one that opens one": (
        "        case GATE_SHUT:\n        case GATE_DRAINING:\n",
        "        case GATE_SHUT:\n        case GATE_OPENING:\n        case GATE_DRAINING:\n",
    ),
    "lost wake-up: the end of a turn": (
        "phase == GATE_QUEUING_ASKED; }",
        "phase == GATE_QUEUING_ASKED || phase == GATE_SHUT; }",
    ),
    "lost wake-up: a turn arrives that is no longer wanted": (
        "&& !is_at_work(step.phase);",
        "&& !is_at_work(step.phase) && !(event == GATE_TURN_ARRIVED && step.phase == GATE_SHUT);",
    ),
    "lost wake-up: launches begin to be queued": (
        "&& !is_at_work(step.phase);",
        "&& !is_at_work(step.phase) && event != GATE_QUEUE_BEGUN;",
    ),
    "lost launch: a turn ends with closed segments": (
        "if (view->is_any_closed) return to(GATE_QUEUING_WANTED, GATE_DO_NOTHING);",
        "",
    ),
    "double close: contexts end in the middle of a turn's end": (
        "        case GATE_CLOSING_ASKED:\n            return stay(view, GATE_DO_NOTHING);\n",
        "        case GATE_CLOSING_ASKED:\n            return to(GATE_CLOSING, GATE_DROP_TURN);\n",
    ),
}


@pytest.fixture(scope="session")
def mutant(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], Machine]:
    """Builds the machine with one piece of its source replaced."""

    def built(piece: str, other: str) -> Machine:
        text = SOURCE.read_text()
        assert text.count(piece) == 1
        folder = tmp_path_factory.mktemp("mutant")
        (folder / SOURCE.name).write_text(text.replace(piece, other))
        compile_as_limiter(folder / "mutant.so", "-shared", str(folder / SOURCE.name))
        return Machine(ctypes.CDLL(str(folder / "mutant.so")))

    return built


def fault_of(machine: Machine, walks: int) -> str | None:
    """What the first walk that fails says, without a twin."""
    for seed in range(walks):
        try:
            walk(machine, seed)
        except Fault as fault:
            return str(fault)
    return None


@pytest.mark.heavy
@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_found(mutant: Callable[[str, str], Machine], name: str) -> None:
    assert fault_of(mutant(*FAULTS[name]), 400)
