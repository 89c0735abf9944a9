"""Launches under a share of the card's time, on the simulated driver, whose kernels take the time in their names.

A share must not be exceeded and must be roughly reached, because the machine may be busy. `test_token_bucket.py`
tests the exact arithmetic, `benchmarks.limiter_compute` the shares of a real card.
"""

import itertools
import signal
import statistics
import time
from collections.abc import Callable

import pytest

from simgpu.session import ProbeSession
from tests.limiter.conftest import Container
from vgpu.domain.asks.policy import ComputePolicy
from vgpu.domain.formats.limits import ANY_GPU, CardLimit, Limits

pytestmark = pytest.mark.slow

Make = Callable[..., Container]
MS = 1_000_000  # ns
SECONDS = 0.5
ALLOWANCE = 0.010 / SECONDS + 0.02  # the burst cap of 10 ms, and one kernel
REACHED = 0.3  # the part of the share that is reached on a busy machine
LONG_US = 500  # kernels that a busy machine can launch fast enough
LIMIT = "4GiB"
SEEN_S = 1.0  # after which changed limits are in force


def start(container: Container) -> ProbeSession:
    session = container.session()
    assert session("start()") == 0
    return session


@pytest.mark.parametrize("cores", [10, 30, 80])
@pytest.mark.parametrize("us", [20, 500, 7000])
def test_a_share_is_reached_and_not_exceeded(make_container: Make, cores: int, us: int) -> None:
    session = start(make_container(LIMIT, cores))
    share = session(f"launches.feed({us}, {SECONDS})")
    assert share <= cores / 100 + ALLOWANCE
    if us >= LONG_US:
        assert share >= cores / 100 * REACHED


@pytest.mark.parametrize(("kind", "suffix"), [("0", ""), ("launches.stream()", ""), ("0", "_ptsz")])
def test_every_kind_of_stream_is_limited(make_container: Make, kind: str, suffix: str) -> None:
    session = start(make_container(LIMIT, 30))
    stream = session(kind)
    assert session(f"launches.feed(500, {SECONDS}, {stream}, {suffix!r})") <= 0.3 + ALLOWANCE


@pytest.mark.parametrize(
    ("late", "us"), [("", 200), ("late40_", 200), ("late200_", 350)], ids=["at once", "40 us", "200 us"]
)
def test_the_time_that_a_turns_first_launch_takes_in_the_host_is_not_charged(
    make_container: Make, late: str, us: int
) -> None:
    """Up to 50 us of it: the host may have been interrupted while the card worked."""
    container = make_container(LIMIT, 1)  # a turn has one kernel
    session = start(container)
    session(f"globals().update(of_turn=launches.kernels.load('{late}200'))")
    session("launches.feed(500, 0.2)")  # uses what an idle container has saved
    charged = [container.region().cards[0].gpu_ns]
    for _ in range(30):
        session("launches.launch(of_turn), launches.cuda.cuCtxSynchronize()")
        charged.append(container.region().cards[0].gpu_ns)
    costs = [after - before for before, after in itertools.pairwise(charged)]
    assert abs(statistics.median(costs) / 1000 - us) <= 15


@pytest.mark.parametrize("load", ["kernels.load", "kernels.from_library"])
def test_the_loading_of_a_kernel_is_not_charged(make_container: Make, load: str) -> None:
    """Loading takes 2 ms of the host's time, the kernels 20 us of the card's."""
    container = make_container(LIMIT, 50)
    session = start(container)
    session(f"globals().update(fs=[{load}('lazy_20') for _ in range(20)])")
    before = container.region().cards[0].gpu_ns
    session("[launches.timed_launch(f) for f in fs]")
    session("launches.feed(20, 0.01)")  # what is measured when the last turn ends
    assert container.region().cards[0].gpu_ns - before < 10 * MS + 10 * MS  # of loading 40


@pytest.mark.parametrize(
    ("begin", "stream"),
    [("copies.copy('cuMemcpyHtoDAsync_v2', pinned, card)", "0"), ("None", "launches.stream()")],
    ids=["copy", "wait"],
)
def test_a_pause_before_a_wait_is_not_charged(make_container: Make, begin: str, stream: str) -> None:
    """The program works without the card, then makes it copy, or not, and waits for a stream."""
    container = make_container(LIMIT, 50)
    session = start(container)
    session("globals().update(card=alloc(copies.SIZE)[1], pinned=copies.pinned(), f=launches.kernel(200))")
    session(f"globals().update(stream={stream})")
    session("[launches.timed_launch(f) for _ in range(20)]")
    before = container.region().cards[0].gpu_ns
    for _ in range(5):
        session("[launches.launch(f) for _ in range(10)]")
        time.sleep(0.1)
        session(begin)
        session("host_functions.call('late', stream, 0.001)")
        session("launches.cuda.cuCtxSynchronize()")
    session("launches.feed(20, 0.01)")
    assert container.region().cards[0].gpu_ns - before < 100 * MS  # of 510


def test_threads_share_their_process_s_turn(make_container: Make) -> None:
    session = start(make_container(LIMIT, 30))
    shares = session(f"launches.feed_in_threads(500, {SECONDS}, 4)")
    assert len(shares) == 4
    assert sum(shares) <= 4 * (0.3 + ALLOWANCE)  # the simulated card runs their kernels concurrently


def test_the_processes_of_a_container_divide_its_share(make_container: Make) -> None:
    container = make_container(LIMIT, 30)
    sessions = [start(container) for _ in range(3)]
    begun = time.monotonic()
    for session in sessions:
        session.tell(f"launches.feed(500, {SECONDS})")
    shares = [session.answer() for session in sessions]
    used = container.region().cards[0].gpu_ns / 1e9
    assert used <= 0.3 * (time.monotonic() - begun) + 0.03
    assert min(shares) > 0.02


@pytest.mark.parametrize("cores", [None, 100])
def test_without_a_share_nothing_waits(make_container: Make, cores: int | None) -> None:
    container = make_container(LIMIT, cores)
    session = start(container)
    assert session("launches.longest(1000, 200)") < 0.1
    assert container.region().cards[0].delayed_launches == 0


@pytest.mark.parametrize("policy", [ComputePolicy.BURST, ComputePolicy.BEST_EFFORT])
def test_burst_and_best_effort_do_not_wait_on_an_idle_card(make_container: Make, policy: ComputePolicy) -> None:
    container = make_container(LIMIT, 30)
    container.limit(Limits((CardLimit(ANY_GPU, 1 << 32, 30),), policy))
    assert start(container)("launches.longest(1000, 200)") < 0.1


def test_a_changed_share_holds_within_a_second(make_container: Make) -> None:
    container = make_container(LIMIT, 100)
    session = start(container)
    assert session("launches.longest(100, 50)") < 0.1
    container.limit(Limits((CardLimit(ANY_GPU, 1 << 32, 10),)))
    time.sleep(SEEN_S)
    assert session(f"launches.feed(500, {SECONDS})") <= 0.1 + ALLOWANCE
    container.limit(Limits((CardLimit(ANY_GPU, 1 << 32, 100),)))
    time.sleep(SEEN_S)
    assert session("launches.longest(100, 50)") < 0.1


def test_gpu_time_and_waiting_are_counted_in_the_region(make_container: Make) -> None:
    container = make_container(LIMIT, 30)
    session = start(container)
    share = session(f"launches.feed(500, {SECONDS})")
    card = container.region().cards[0]
    assert card.gpu_ns >= 0.8 * share * SECONDS * 1e9
    assert card.delayed_launches > 0
    assert card.throttled_ns > 0.3 * SECONDS * 1e9
    assert card.longest_wait_us > 1000
    assert card.activity.share.ns > 0.3 * SECONDS * 1e9
    assert card.activity.drain.count > 0
    assert (card.activity.turn.count, card.activity.turns) == (0, 0)
    assert 0 < card.activity.last_launch_at_ns < time.monotonic_ns()
    assert card.activity.last_kernel_end_at_ns > time.monotonic_ns() - 10e9


def test_gaps_of_the_host_are_counted_in_the_region(make_container: Make) -> None:
    container = make_container(LIMIT, 60)
    session = start(container)
    session("(lambda f: [(launches.launch(f), launches.time.sleep(0.002)) for _ in range(60)])(launches.kernel(100))")
    activity = container.region().cards[0].activity
    assert activity.host_gaps > 5
    assert activity.host_gap_ns > activity.host_gaps * 1e6


@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGSTOP])
def test_a_process_that_dies_or_stops_in_its_turn_does_not_block_others(
    make_container: Make, ending: signal.Signals
) -> None:
    container = make_container(LIMIT, 50)
    other, session = start(container), start(container)
    other.tell("launches.feed(500, 30)")
    time.sleep(0.3)
    other.process.send_signal(ending)
    assert session("launches.longest(500, 40)") < 0.5


def test_streams_and_contexts_end_with_launches_in_flight(make_container: Make) -> None:
    session = start(make_container(LIMIT, 50))
    kernel = session("launches.kernel(300)")
    for _ in range(20):
        stream = session("launches.stream()")
        assert session(f"[launches.launch({kernel}, {stream}) for _ in range(3)]") == [0] * 3
        assert session(f"launches.end_stream({stream})") == 0
    assert set(session("launches.end_context(launches.kernel(300))")) == {0}
    assert session(f"launches.feed(500, {SECONDS})") <= 0.5 + ALLOWANCE


def test_captured_launches_neither_wait_nor_are_charged(make_container: Make) -> None:
    container = make_container(LIMIT, 5)
    session = start(container)
    kernel, stream = session("launches.kernel(5000)"), session("captures.stream()")
    assert session(f"[launches.launch({kernel}) for _ in range(2)]") == [0, 0]
    assert session(f"captures.begin({stream})") == 0
    begun, before = time.monotonic(), container.region().cards[0]
    assert session(f"{{captures.launch({kernel}, {stream}) for _ in range(200)}} == {{0}}")
    assert session(f"captures.end({stream})")[0] == 0
    assert time.monotonic() - begun < 1  # launched, they would take 1 s, and 20 s at 5 %
    assert container.region().cards[0].delayed_launches == before.delayed_launches


def test_measuring_another_thread_s_launches_does_not_invalidate_a_capture(make_container: Make) -> None:
    container = make_container(LIMIT, 50)
    session = start(container)
    kernel, other, stream = (
        session(call) for call in ("launches.kernel(900)", "launches.stream()", "captures.stream()")
    )
    assert session(f"captures.begin({stream}, captures.GLOBAL)") == 0
    assert session(f"launches.launch_elsewhere({kernel}, {other}, 40)") == [0]
    assert container.region().cards[0].delayed_launches > 0
    assert session(f"captures.end({stream})")[0] == 0


def test_a_forked_child_has_no_turn(make_container: Make) -> None:
    session = start(make_container(LIMIT, 50))
    assert session("launches.launch(launches.kernel(500))") == 0
    assert session("in_fork('1 + 1')") == 2
    assert session(f"launches.feed(500, {SECONDS})") <= 0.5 + ALLOWANCE


def test_a_wait_for_work_that_is_done_says_nothing_about_the_card(make_container: Make) -> None:
    """The pauses of a program that waits for finished work before it launches again are not charged."""
    container = make_container(LIMIT, 60)
    session = start(container)
    session(
        "(lambda f: [(launches.launch(f), launches.cuda.cuCtxSynchronize(), launches.time.sleep(0.002),"
        " launches.cuda.cuCtxSynchronize()) for _ in range(100)])(launches.kernel(500))"
    )
    card = container.region().cards[0]
    assert card.activity.host_gaps > 30
    assert card.gpu_ns < 100 * 500_000 * 2
