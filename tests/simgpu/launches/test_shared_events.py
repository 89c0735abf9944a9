"""Events that several processes share: cuIpcGetEventHandle and cuIpcOpenEventHandle."""

import pytest

from simgpu.session import ProbeSession
from simgpu.world import World

INVALID_VALUE, INVALID_CONTEXT, INVALID_HANDLE, NOT_READY = 1, 201, 400, 600
LAUNCH = "launches.launch(launches.kernel({}))"


@pytest.fixture
def other(world: World) -> ProbeSession:
    started = world.session()
    assert started("start()") == 0
    return started


@pytest.fixture
def event(session: ProbeSession) -> int:
    return int(session("ipc.shared_event()"))


def opened(session: ProbeSession, other: ProbeSession, event: int) -> int:
    result, handle = session(f"ipc.export_event({event})")
    assert result == 0
    result, there = other(f"ipc.take_event('{handle}')")
    assert result == 0
    return int(there)


def test_another_process_waits_for_the_work_before_the_event(
    session: ProbeSession, other: ProbeSession, event: int
) -> None:
    there = opened(session, other, event)
    assert other(f"ipc.query({there})") == 0
    session(LAUNCH.format(300_000))
    session(f"ipc.record({event})")
    assert other(f"ipc.query({there})") == NOT_READY
    assert other(f"ipc.await_event({there})") == 0
    assert session(f"ipc.query({event})") == 0


def test_the_maker_waits_for_what_another_process_recorded(
    session: ProbeSession, other: ProbeSession, event: int
) -> None:
    there = opened(session, other, event)
    other(LAUNCH.format(300_000))
    other(f"ipc.record({there})")
    assert session(f"ipc.query({event})") == NOT_READY
    assert session(f"ipc.await_event({event})") == 0
    assert other(f"ipc.query({there})") == 0


def test_the_work_of_a_killed_process_has_passed(session: ProbeSession, other: ProbeSession, event: int) -> None:
    there = opened(session, other, event)
    other(LAUNCH.format(10_000_000))
    other(f"ipc.record({there})")
    other.kill()
    assert session(f"ipc.await_event({event})") == 0


def test_an_event_that_its_maker_ended_cannot_be_opened(session: ProbeSession, other: ProbeSession, event: int) -> None:
    there = opened(session, other, event)
    _, handle = session(f"ipc.export_event({event})")
    assert session(f"ipc.take_event('{handle}')[0]") == INVALID_CONTEXT
    assert session(f"ipc.end_event({event})") == 0
    assert other(f"ipc.take_event('{handle}')[0]") == INVALID_VALUE
    assert [other(f"ipc.query({there})"), other(f"ipc.end_event({there})")] == [0, 0]


def test_a_shared_event_has_no_times(session: ProbeSession, event: int) -> None:
    assert session("made('cuEventCreate', 4)[0]") == INVALID_VALUE
    session(f"ipc.record({event})")
    session(f"ipc.await_event({event})")
    assert session(f"launches.between({event}, {event})") == -INVALID_HANDLE
    assert session(f"ipc.export_event({session('launches.recorded()')})[0]") == INVALID_HANDLE


def test_places_of_ended_events_are_used_again(session: ProbeSession, other: ProbeSession) -> None:
    """More events than the card has places for, one after another; then those of a killed process."""
    use = "ipc.export_event(e := ipc.shared_event())[0] or ipc.end_event(e)"
    assert session(f"sum({use} for _ in range(600))") == 0
    assert other("sum(ipc.export_event(ipc.shared_event())[0] for _ in range(500))") == 0
    other.kill()
    assert session("[sum(ipc.export_event(ipc.shared_event())[0] for _ in range(500))]") == [0]
