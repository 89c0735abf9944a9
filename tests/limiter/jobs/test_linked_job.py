"""A job on two simulated cards that are its own, under a fixed share: its steps end with a collective (ADR 176).

Times are loose, because the machine may be busy. `tests/limiter/region/test_linked_cards.py` tests the rules in virtual
time.
"""

import struct
from collections.abc import Callable

import pytest

from simgpu.session import ProbeSession
from tests.limiter.compute.test_launches import LIMIT, start
from tests.limiter.compute.test_tenants import reached
from tests.limiter.conftest import Container
from vgpu.domain.formats import region

pytestmark = pytest.mark.slow

Make = Callable[..., Container]
STEPS, WORK_US, COLLECTIVE_US = 40, 8000, 1000
ALONE_S = STEPS * (WORK_US + COLLECTIVE_US) / 1e6
SAVED_S = 0.1 + 0.1 + 0.01  # GPU time beyond the share: of a window, of launches that others wait for, the burst cap
U32 = struct.Struct("<I")
ACTIVITY_SIZE, LINKED_AT = 256, 240  # of `struct region_activity`, and of its field `linked`
SLOWER = 1.2  # a busy machine


def linked(container: Container) -> list[int]:
    """For each card the cards that it opens and closes with, one bit each."""
    raw = (container.folder / "region").read_bytes()
    return [U32.unpack_from(raw, region.ACTIVITY_AT + card * ACTIVITY_SIZE + LINKED_AT)[0] for card in range(2)]


def job(container: Container) -> ProbeSession:
    session = start(container)
    for device in range(2):
        session(f"collectives.prepare({device}, 2, {COLLECTIVE_US})")
    assert session("collectives.link()") == [0, 0]
    session(f"collectives.steps(10, {WORK_US})")
    return session


@pytest.mark.parametrize("cores", [30, 50, 80])
@pytest.mark.parametrize("load", ["steps", "steps_in_threads"])
def test_a_job_has_its_share_of_its_own_speed(make_container: Make, cores: int, load: str) -> None:
    """Before, fixed 50 took more than twice as long as it should, and fixed 20 four times as long."""
    session = job(make_container(LIMIT, cores))

    def has_its_share() -> bool:
        seconds = session(f"collectives.{load}({STEPS}, {WORK_US})")
        assert seconds >= (ALONE_S - SAVED_S) * 100 / cores
        return bool(seconds <= SLOWER * ALONE_S * 100 / cores)

    assert reached(has_its_share)


def ranks(container: Container) -> list[ProbeSession]:
    """A rank of the job in each process."""
    sessions = []
    for device in range(2):
        session = container.session()
        assert session(f"start({device})") == 0
        session(f"collectives.prepare({device}, 2, {COLLECTIVE_US})")
        sessions.append(session)
    return sessions


def map_memory(container: Container, owner: ProbeSession, other: ProbeSession, device: int) -> None:
    """Maps memory on a rank's device for the other rank, as NCCL does."""
    path, size = container.world.state / f"socket-{device}", 2 << 20
    _, handle = owner(f"vmm.create({size}, handle_types=vmm.POSIX_FD, device={device})")
    _, descriptor = owner(f"vmm.export({handle})")
    other(f"ipc.listen('{path}')")
    owner(f"ipc.send('{path}', {descriptor})")
    received = other(f"ipc.receive('{path}')")
    result, taken = other(f"vmm.take({received})")
    assert result == 0
    assert other(f"vmm.allow(vmm.mapped({taken}, {size}), {size}, {1 - device})") == 0


def open_memory(sessions: list[ProbeSession]) -> None:
    """Lets each rank open the other one's memory, as older versions of NCCL do."""
    handles = []
    for session in sessions:
        result, pointer = session("alloc(2 << 20)")
        assert result == 0
        handles.append(session(f"ipc.export({pointer})")[1])
    for session, handle in zip(sessions, reversed(handles), strict=True):
        assert session(f"ipc.take('{handle}')")[0] == 0


def steps_together(sessions: list[ProbeSession], count: int) -> float:
    """Seconds of that many steps of the job."""
    for session in sessions:
        session.tell(f"collectives.steps({count}, {WORK_US})")
    return max(float(session.answer()) for session in sessions)


@pytest.mark.parametrize("cores", [30, 50, 80])
def test_ranks_in_processes_of_one_container_have_their_share(make_container: Make, cores: int) -> None:
    """Before, each rank's card closed by itself: fixed 50 took five times as long."""
    container = make_container(LIMIT, cores)
    sessions = ranks(container)
    open_memory(sessions)
    steps_together(sessions, 10)
    assert linked(container) == [3, 3]

    def has_its_share() -> bool:
        seconds = steps_together(sessions, STEPS)
        assert seconds >= (ALONE_S - SAVED_S) * 100 / cores
        return bool(seconds <= SLOWER * ALONE_S * 100 / cores)

    assert reached(has_its_share)


def test_ranks_that_map_each_others_memory_have_their_share(make_container: Make) -> None:
    """Before, the cards were not linked: data-parallel training at fixed 50 had a fifth of its share on two H200."""
    container = make_container(LIMIT, 50)
    sessions = ranks(container)
    for device in range(2):
        map_memory(container, sessions[device], sessions[1 - device], device)
    steps_together(sessions, 10)
    assert linked(container) == [3, 3]
    assert reached(lambda: steps_together(sessions, STEPS) <= SLOWER * ALONE_S * 2)


def test_memory_on_another_card_links_the_cards_of_a_process(make_container: Make) -> None:
    container, size = make_container(LIMIT, 50), 2 << 20
    session = start(container)
    _, handle = session(f"vmm.create({size}, device=1)")
    address = session(f"vmm.mapped({handle}, {size})")
    assert session(f"vmm.allow({address}, {size}, 1)") == 0
    assert linked(container) == [0, 0]
    assert session(f"vmm.allow({address}, {size}, 0)") == 0
    assert linked(container) == [3, 3]


def test_a_linked_card_has_its_share_while_the_other_one_rests(make_container: Make) -> None:
    session = job(make_container(LIMIT, 50))
    assert reached(lambda: 0.35 < session("launches.feed(500, 1.5)") < 0.5 + SAVED_S / 1.5)


def test_cards_are_linked_until_access_is_disabled(make_container: Make) -> None:
    container = make_container(LIMIT, 50)
    session = job(container)
    assert linked(container) == [3, 3]
    assert session("collectives.unlink()") == [0, 0]
    session(f"collectives.steps(10, {WORK_US})")
    assert linked(container) == [0, 0]
