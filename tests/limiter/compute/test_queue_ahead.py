"""Launches that are queued ahead of their turn, on the simulated driver, with an arbiter that the test controls.

On the simulated card a closed wait holds back all streams of its context, and the calls block that block on a real one.
"""

import time

import pytest

from limiter.arbitration import ANY, DONE, DONE_AWAITED
from simgpu.session import ProbeSession
from tests.limiter.compute.test_arbitration import Joined, Start, Tenant, arbiter, joined, path, start  # noqa: F401  # fixtures
from tests.limiter.conftest import Container
from tests.limiter.fake_arbiter import MS, Arbiter

pytestmark = pytest.mark.slow

MADE = "globals().update(f=launches.kernel(20), k=launches.stream())"
HELD_S = 0.3
GRACE_NS = 1_000_000


@pytest.fixture
def queuing(joined: Joined) -> Tenant:  # noqa: F811
    """A process that knows its kernel's time and has no turn, and an arbiter that gives none."""
    session, other, container = joined()
    session(MADE)
    session("[launches.launch(f) for _ in range(200)]")
    session("launches.cuda.cuCtxSynchronize()")
    other.gives = False
    client = other.client()
    client.give(0)
    return session, other, container


def launched(session: ProbeSession, count: int = 20) -> float:
    """Seconds that launches took the host."""
    return float(
        session(
            f"(lambda b: [launches.launch(f) for _ in range({count})] and launches.time.monotonic() - b)"
            "(launches.time.monotonic())"
        )
    )


def give(other: Arbiter) -> None:
    other.gives = True
    other.client().give(other.client().page.turn + 1000)


def test_launches_without_a_turn_do_not_block_the_host_and_run_in_the_turn(queuing: Tenant) -> None:
    session, other, container = queuing
    assert launched(session) < HELD_S / 3
    time.sleep(HELD_S)
    assert session("launches.cuda.cuStreamQuery(None)") == 600  # CUDA_ERROR_NOT_READY
    give(other)
    assert session("launches.cuda.cuCtxSynchronize()") == 0
    activity = container.region().cards[0].activity
    assert activity.queued_launches >= 20
    assert activity.queued.ns > HELD_S / 2 * 1e9


@pytest.mark.parametrize(
    "call",
    [
        "launches.cuda.cuStreamSynchronize(None)",
        "launches.cuda.cuCtxSynchronize()",
        "launches.cuda.cuMemFree_v2(launches.P(m))",
        "launches.kernel(300) and 0",
        "launches.end_stream(k)",
    ],
)
def test_a_call_that_blocks_ends_with_the_turn(queuing: Tenant, call: str) -> None:
    session, other, _ = queuing
    session("globals().update(m=launches._made('cuMemAlloc_v2', launches.ctypes.c_size_t(1 << 20)))")
    launched(session)
    session.tell(call)
    time.sleep(HELD_S)
    give(other)
    assert session.answer() == 0


@pytest.mark.parametrize("wait", ["cuStreamSynchronize(None)", "cuCtxSynchronize()"])
def test_a_wait_does_not_lengthen_the_expected_use_of_the_card(queuing: Tenant, wait: str) -> None:
    """The arbiter sees that the host waits, and when the wait ends."""
    session, other, container = queuing
    give(other)
    session("globals().update(g=launches.kernel(200_000))")
    for _ in range(6):  # a host-bound program, as the one of the fixture, would give its turn back instead
        session("launches.launch(f)")
        session(f"launches.cuda.{wait}")
    session("launches.launch(g)")
    session(f"launches.cuda.{wait}")
    session("launches.launch(g)")
    session.tell(f"launches.cuda.{wait}")
    time.sleep(0.05)
    busy_until, awaited_until = use(container)
    assert busy_until < awaited_until + GRACE_NS
    assert session.answer() == 0
    assert use(container)[1] == 0


def use(container: Container) -> tuple[int, int]:
    """`busy_until` and `awaited_until` of the first card's row, of `struct region_card`."""
    row = (container.folder / "region").read_bytes()[256:512]
    return int.from_bytes(row[152:160], "little"), int.from_bytes(row[72:80], "little")


def test_the_arbiter_hears_when_the_work_has_drained_that_the_host_waits_for(queuing: Tenant) -> None:
    """A host-bound program gives its turn back when the host begins to wait."""
    session, other, _ = queuing
    give(other)
    client, step = other.client(), "[launches.launch(f) or launches.time.sleep(1e-4) for _ in range(20)]"
    for _ in range(20):
        session(f"{step} and launches.cuda.cuCtxSynchronize()")
    time.sleep(0.1)  # the arbiter's thread reads the last message
    awaited = {turn for kind, turn, _ in client.heard if kind == DONE_AWAITED}
    drained = {turn for kind, turn, ns in client.heard if kind == DONE and ns == 0}
    assert awaited  # not every turn: one is also given back when the host sleeps for too long
    assert awaited <= drained


def test_an_allocation_is_refused_only_after_queued_work_has_drained(queuing: Tenant) -> None:
    """The work may contain the frees of memory that is still reserved."""
    session, other, container = queuing
    before = container.region().cards[0].activity.queued_launches
    launched(session)
    session.tell("launches.cuda.cuMemAlloc_v2(launches.ctypes.byref(launches.P()), launches.ctypes.c_size_t(1 << 44))")
    time.sleep(HELD_S)
    assert container.region().cards[0].activity.queued_launches == before
    give(other)
    assert session.answer() == 2
    assert container.region().cards[0].activity.queued_launches >= before + 20


def test_a_tenant_that_is_asked_to_yield_has_little_in_flight_however_much_is_queued(joined: Joined) -> None:  # noqa: F811
    """The host is up to 20 ms ahead of the card, but only a part of that is open."""
    session, other, container = joined(budget_ns=ANY, depth_ns=MS)
    session("launches.feed(50, 0.3)")
    session.tell("launches.feed(50, 1)")
    time.sleep(0.5)
    client = other.client()
    announced = len(client.done)
    client.page.yield_turn = client.page.turn
    until = time.monotonic() + 5
    while len(client.done) == announced and time.monotonic() < until:
        time.sleep(0.001)
    assert client.done[announced][1] <= 4 * MS
    session.answer()
    assert container.region().cards[0].activity.queued_launches > 0


def test_what_is_charged_is_the_time_of_the_kernels_and_not_that_behind_the_wait(queuing: Tenant) -> None:
    session, other, container = queuing
    before = container.region().cards[0].gpu_ns
    for _ in range(8):
        other.gives = False
        other.client().give(0)
        launched(session, 40)
        time.sleep(0.05)
        give(other)
        session("launches.cuda.cuCtxSynchronize()")
    time.sleep(0.1)
    other.client().give(0)
    launched(session, 1)
    charged = container.region().cards[0].gpu_ns - before
    assert charged < 4 * 8 * 40 * 50_000  # 64 ms; 400 ms lie behind waits


def test_programs_with_long_kernels_are_not_queued(joined: Joined) -> None:  # noqa: F811
    """A segment would hold one kernel, and cost a wait and a write."""
    session, _, container = joined(budget_ns=ANY, depth_ns=MS)
    session("launches.feed(500, 0.3)")
    before = container.region().cards[0].activity.queued_launches
    session("launches.feed(500, 0.3)")
    assert container.region().cards[0].activity.queued_launches == before


def charged_for_new_kernels(joined: Joined) -> float:  # noqa: F811
    """Milliseconds charged to a new process for 2,000 launches of 20 kernels, each launched 23 times before."""
    session, _, container = joined(budget_ns=ANY, depth_ns=5 * MS)
    session("globals().update(fs=launches.cold_kernels(20, 20))")
    session("[launches.launch(f) for f in fs for _ in range(3)]")
    session("[launches.launch(f) for _ in range(20) for f in fs]")
    session("launches.cuda.cuCtxSynchronize()")
    before = container.region().cards[0].gpu_ns
    session("[launches.launch(f) for _ in range(100) for f in fs]")
    session("launches.cuda.cuCtxSynchronize()")
    session("launches.longest(10, 5)")
    return (container.region().cards[0].gpu_ns - before) / MS


def test_a_first_launch_that_took_long_is_measured_again_at_once(joined: Joined) -> None:  # noqa: F811
    """The first sample of each kernel is 2 ms, of a kernel of 20 us."""
    # A busy machine prolongs samples.
    assert min(charged_for_new_kernels(joined) for _ in range(3)) < 60  # they take 40 ms


@pytest.mark.parametrize("us", [110, 300])
def test_a_program_whose_kernels_become_long_is_no_longer_queued(joined: Joined, us: int) -> None:  # noqa: F811
    """Its host is always ahead of the card, so that a turn never ends with nothing queued."""
    session, _, container = joined(budget_ns=5 * MS, depth_ns=MS)
    session("launches.feed(50, 0.3)")
    session(f"globals().update(long=launches.kernel({us}))")
    session("[launches.launch(long) for _ in range(20)]")
    session.tell(f"launches.feed(50, 0.3) and launches.feed({us}, 3)")
    time.sleep(1.5)
    before = container.region().cards[0]
    time.sleep(1)
    after = container.region().cards[0]
    assert before.activity.queued_launches > 0
    assert after.activity.queued_launches == before.activity.queued_launches
    assert after.gpu_ns > before.gpu_ns + 200 * MS
    session.answer()


def test_nothing_is_queued_where_the_environment_forbids_it(joined: Joined, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    monkeypatch.setenv("VGPU_QUEUE_AHEAD", "0")
    session, _, container = joined()
    session("launches.feed(500, 0.3)")
    assert container.region().cards[0].activity.queued_launches == 0


def test_more_launches_than_a_channel_takes(queuing: Tenant) -> None:
    session, other, _ = queuing
    give(other)
    assert launched(session, 3000) < 10
    assert session("launches.cuda.cuCtxSynchronize()") == 0


def test_the_wait_is_opened_without_an_arbiter(queuing: Tenant) -> None:
    session, other, _ = queuing
    launched(session)
    other.close()
    begun = time.monotonic()
    assert session("launches.cuda.cuCtxSynchronize()") == 0
    assert time.monotonic() - begun < 1


def test_a_stalled_arbiter_s_clients_go_on(queuing: Tenant) -> None:
    session, other, _ = queuing
    launched(session)
    other.beats = False
    begun = time.monotonic()
    assert session("launches.cuda.cuCtxSynchronize()") == 0
    assert time.monotonic() - begun < 1


def test_an_arbiter_that_gives_no_turn_delays_for_twenty_seconds_at_most(queuing: Tenant) -> None:
    session, _, _ = queuing
    launched(session)
    begun = time.monotonic()
    assert session("launches.cuda.cuCtxSynchronize()") == 0
    assert 1 < time.monotonic() - begun < 25  # ARBITER_TIMEOUT of card_turn.c is 20 s


def test_the_numbers_of_batches_wrap_around(queuing: Tenant) -> None:
    session, _, _ = queuing
    word = "(lambda a: (launches.cuda.cuStreamWaitValue32_v2(None, launches.ctypes.c_uint64(a), {value}, 0)))"
    make = "launches._made('cuMemHostAlloc', launches.ctypes.c_size_t(64), 3)"
    session(f"globals().update(w={make})")
    session("launches.ctypes.memset(w, 0xff, 4)")
    assert session(word.format(value=5) + "(w)") == 0  # 2^32 - 1 is 6 before 5
    session("launches.ctypes.memset(w, 0, 4)")
    assert session(word.format(value=0xFFFFFFFF) + "(w)") == 0  # 0 is past 2^32 - 1


def test_a_killed_process_leaves_nothing_behind(
    queuing: Tenant,
    start: Start,  # noqa: F811
) -> None:
    session, other, container = queuing
    launched(session)
    session.kill()
    other.gives = True
    again = start(container)
    assert again("launches.longest(100, 5)") < 2
    assert again("launches.cuda.cuCtxSynchronize()") == 0


def test_a_forked_child_does_not_wait(queuing: Tenant) -> None:
    session, other, _ = queuing
    launched(session)
    assert (
        session(
            "(lambda p: __import__('os').waitpid(p, 0)[1] if p else __import__('os')._exit(0))(__import__('os').fork())"
        )
        == 0
    )
    give(other)
    assert session("launches.cuda.cuCtxSynchronize()") == 0


@pytest.mark.parametrize(
    "end",
    [
        "made('cuDevicePrimaryCtxRetain', 0)[0] or cuda.cuDevicePrimaryCtxRelease_v2(0)",
        "cuda.cuCtxDestroy_v2(launches.P(made('cuCtxCreate_v2', 0, 0)[1]))",
        "made('cuDevicePrimaryCtxRetain', 1)[0] or cuda.cuDevicePrimaryCtxRelease_v2(1)",
    ],
    ids=["spare reference", "another context", "another card"],
)
def test_ends_of_other_contexts_leave_the_page_of_queued_launches(joined: Joined, end: str) -> None:  # noqa: F811
    """A page takes 4 KiB of pinned memory."""
    session, _, container = joined()
    session(MADE)
    session("[launches.launch(f) for _ in range(200)]")
    ends = f"[{end} or launches.launch(f) or launches.launch(f) for _ in range(ROUNDS)]"
    assert set(session(ends.replace("ROUNDS", "50"))) == {0}
    before = session("int(open('/proc/self/statm').read().split()[1])")
    assert set(session(ends.replace("ROUNDS", "1000"))) == {0}
    grown = session("int(open('/proc/self/statm').read().split()[1])") - before
    assert grown < 250  # pages of 4 KiB
    assert session("launches.cuda.cuCtxSynchronize()") == 0
    assert container.region().cards[0].activity.queued_launches > 0
