"""The limiter with an arbiter that the test controls, on the simulated driver.

Assertions on time are loose, because the machine may be busy; assertions on messages are exact.
"""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from limiter.arbitration import ANY, NO_SUCH_CARD, OTHER_VERSION, WANT
from simgpu.session import ProbeSession
from tests.limiter.conftest import Container
from tests.limiter.fake_arbiter import MS, Arbiter
from vgpu.domain.asks.policy import ComputePolicy
from vgpu.domain.formats.limits import ANY_GPU, CardLimit, Limits, uuid_bytes

pytestmark = pytest.mark.slow

Make = Callable[..., Container]
MakeArbiter = Callable[..., Arbiter]
LIMIT = "4GiB"
SOCKET = "VGPU_ARBITER_SOCKET"
SEEN_S = 1.0  # after which a change is in force
LATE = 1.15  # times the kernels' time: events that a busy machine records late are charged


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "socket"


@pytest.fixture
def arbiter(path: Path) -> Iterator[MakeArbiter]:
    made: list[Arbiter] = []

    def make(**how: object) -> Arbiter:
        made.append(Arbiter(path, **how))  # type: ignore[arg-type]
        return made[-1]

    yield make
    for arbiter in made:
        arbiter.close()


@pytest.fixture
def start(path: Path) -> Callable[[Container], ProbeSession]:
    def started(container: Container) -> ProbeSession:
        session = container.session(**{SOCKET: str(path)})
        assert session("start()") == 0
        return session

    return started


Start = Callable[[Container], ProbeSession]


def join(session: ProbeSession, arbiter: Arbiter, number: int = 0) -> None:
    """Launches until the arbiter's welcome has been read."""
    assert session("launches.longest(10, 5)") < 2
    arbiter.client(number)
    for _ in range(3):
        time.sleep(0.3)
        assert session("launches.longest(10, 2)") < 2


Tenant = tuple[ProbeSession, Arbiter, Container]
Joined = Callable[..., Tenant]


@pytest.fixture
def joined(make_container: Make, start: Start, arbiter: MakeArbiter) -> Joined:
    """Start a container's process, limited to `cores`, and connect it to an arbiter with these options."""

    def make(cores: int | None = None, **how: object) -> Tenant:
        container, other = make_container(LIMIT, cores), arbiter(**how)
        session = start(container)
        join(session, other)
        return session, other, container

    return make


def test_a_client_alone_connects_and_asks_for_no_turn(joined: Joined) -> None:
    session, other, container = joined(contended=False)
    assert other.client().uuid == uuid_bytes(container.world.cards[0].uuid)
    assert session("launches.longest(1000, 200)") < 0.1
    assert other.client().heard == []
    assert container.region().cards[0].delayed_launches == 0
    assert time.monotonic_ns() - container.region().cards[0].busy_until_ns < 3e9


@pytest.mark.parametrize("cores", [None, 60])
def test_on_a_contended_card_each_turn_is_asked_for_and_ended(joined: Joined, cores: int | None) -> None:
    session, other, container = joined(cores)
    heard = len(other.client().heard)
    assert session("launches.feed(500, 0.5)") <= (cores or 100) / 100 + 0.05
    client = other.client()
    done = [turn for turn, _ in client.done]
    assert len(client.heard) > heard
    assert done == sorted(done)
    assert all(done.count(turn) <= 2 for turn in done)  # sent twice if the work drained earlier than announced
    assert any(ns > 0 for _, ns in client.done)  # announced before the work has drained
    assert max(ns for _, ns in client.done) <= 10 * MS + 500_000
    card = container.region().cards[0]
    assert card.gpu_ns > 0.1e9 * (cores or 100) / 100
    assert len(set(done)) - 1 <= card.activity.turns <= len(set(done)) + 1
    assert card.activity.turn.count > 0


def test_a_request_says_how_long_the_steps_are_that_the_program_waits_for(joined: Joined) -> None:
    session, other, _ = joined(budget_ns=3 * MS)
    session("launches.feed_waited_for(2000, 40)")
    assert [turn for kind, turn, _ in other.client().heard if kind == WANT][-1] == pytest.approx(2000, rel=0.1)
    session("launches.feed(500, 0.1)")  # launches without a wait
    assert [turn for kind, turn, _ in other.client().heard if kind == WANT][-1] == 0


def test_contention_is_noticed_at_the_next_launch(joined: Joined) -> None:
    session, other, _ = joined(contended=False, gives=False)
    other.client().page.contended = 1
    session.tell("launches.launch(launches.kernel(10))")
    time.sleep(0.3)
    assert other.client().wants > 0
    other.client().give(7)
    assert session.answer() == 0


def test_an_unbounded_turn_lasts_until_the_arbiter_asks_it_back(joined: Joined) -> None:
    session, other, _ = joined(budget_ns=ANY)
    before = list(other.client().done)
    assert session("launches.feed(500, 0.4)") > 0.3
    assert other.client().done == before
    other.gives = False
    turn = other.client().page.turn
    other.client().page.yield_turn = turn
    session.tell("launches.feed(500, 0.2)")
    time.sleep(0.1)
    assert other.client().done[-1][0] == turn
    other.gives = True
    other.client().give(turn + 100)
    assert session.answer() > 0


def test_a_turn_that_goes_on_after_a_charge_counts_as_use_of_the_card(joined: Joined) -> None:
    """Otherwise the arbiter would revoke it, because it takes the card for idle."""
    session, _, container = joined(budget_ns=ANY)
    session.tell("launches.feed(500, 1.5)")
    time.sleep(0.7)  # the time is charged every 50 ms
    assert container.region().cards[0].busy_until_ns > time.monotonic_ns() - 100 * MS
    session.answer()


def test_a_revoked_turn_is_asked_for_again(joined: Joined) -> None:
    session, other, _ = joined(budget_ns=ANY)
    assert session("launches.longest(100, 3)") < 2
    other.gives = False
    other.client().give(0)
    wants = other.client().wants
    session.tell("launches.longest(100, 3)")
    time.sleep(0.2)
    assert other.client().wants > wants
    other.client().give(1000)
    assert session.answer() < 2


def test_work_in_flight_stays_within_the_depth(joined: Joined) -> None:
    session, _, _ = joined(budget_ns=ANY, depth_ns=MS)
    assert session("launches.feed(500, 0.3)") > 0.1
    begun = time.monotonic()
    assert session("launches.longest(500, 100)") < 0.5
    assert time.monotonic() - begun > 0.010  # 50 ms of kernels, of which 20 ms are queued; without a bound none waits


def test_a_turn_that_is_asked_back_is_given_back_before_its_work_is_down_to_the_depth(joined: Joined) -> None:
    """The next turn is given 0.15 ms before the drain: what is announced later leaves the card idle."""
    depth = MS // 10
    session, other, _ = joined(budget_ns=ANY, depth_ns=depth)
    session.tell("launches.feed(600, 2)")
    client, asked_back = other.client(), set[int]()
    time.sleep(0.3)
    for _ in range(50):
        time.sleep(0.03)
        asked_back.add(client.page.turn)
        client.page.yield_turn = client.page.turn
    assert session.answer() > 0.5
    assert sum(left > depth for turn, left in client.done if turn in asked_back) >= 10  # on an idle machine 40


@pytest.mark.parametrize("fallback", [30, 100])
@pytest.mark.parametrize("how", ["close", "stop"])
def test_without_a_heartbeat_the_fallback_share_holds(joined: Joined, how: str, fallback: int) -> None:
    session, other, _ = joined(fallback=fallback)
    session.tell("launches.feed(500, 1.5)")
    time.sleep(0.3)
    if how == "close":
        other.close()
    else:
        other.gives = other.beats = False
    assert session.answer() > 0.2
    share = session("launches.feed(500, 0.5)")
    assert 0.3 * fallback / 100 <= share <= fallback / 100 + 0.05


def test_the_limiter_reconnects_to_a_restarted_arbiter(
    make_container: Make, start: Start, arbiter: MakeArbiter
) -> None:
    session = start(make_container(LIMIT))
    for _ in range(3):
        other = arbiter()

        def is_a_turn_used(other: Arbiter = other) -> bool:
            assert session("launches.feed(500, 1.2)") > 0.1
            return bool(other.client().done)

        assert any(is_a_turn_used() for _ in range(4))  # on a busy machine a heartbeat may be missed
        other.close()


def test_a_stalled_arbiter_is_used_again_after_its_next_heartbeat(joined: Joined) -> None:
    session, other, _ = joined()
    other.beats = other.gives = False
    assert session("launches.feed(500, 0.4)") > 0.05
    other.beats = other.gives = True
    heard = len(other.client().done)
    assert session("launches.feed(500, 0.4)") > 0.05
    assert len(other.client().done) > heard + 5


@pytest.mark.parametrize("result", [OTHER_VERSION, NO_SUCH_CARD, 77])
def test_a_refused_client_goes_on_alone(make_container: Make, start: Start, arbiter: MakeArbiter, result: int) -> None:
    session = start(make_container(LIMIT, 50))
    arbiter(result=result)
    share = session("launches.feed(500, 1)")
    assert 0.15 < share <= 0.55


def test_a_page_that_is_not_sealed_is_rejected(joined: Joined) -> None:
    session, other, _ = joined(seals=False)
    assert session("launches.longest(100, 50)") < 0.1
    assert other.client().heard == []


def test_a_forked_child_does_not_use_its_parent_s_connection(joined: Joined) -> None:
    session, other, _ = joined(budget_ns=ANY)
    assert session("in_fork('1 + 1')") == 2
    done = len(other.client().done)
    assert session("launches.longest(100, 5)") < 1
    assert len(other.clients) == 1
    assert len(other.client().done) == done


def test_the_connection_of_a_killed_process_ends_while_its_child_lives(joined: Joined) -> None:
    session, other, _ = joined()
    session.tell("in_fork('__import__(\"time\").sleep(4)')")
    time.sleep(0.5)
    session.kill()
    time.sleep(0.5)
    assert other.client().has_left


def test_captured_launches_ask_for_no_turn(joined: Joined) -> None:
    session, other, _ = joined()
    kernel, stream = session("launches.kernel(5000)"), session("captures.stream()")
    assert session(f"captures.begin({stream})") == 0
    time.sleep(0.2)  # earlier messages have arrived
    heard = len(other.client().heard)
    assert session(f"{{captures.launch({kernel}, {stream}) for _ in range(50)}} == {{0}}")
    assert len(other.client().heard) == heard
    assert session(f"captures.end({stream})")[0] == 0


def test_destroying_a_context_ends_its_turn(joined: Joined) -> None:
    session, other, _ = joined(budget_ns=ANY)
    turn = other.client().page.turn
    assert set(session("launches.end_context(launches.kernel(300))")) == {0}
    assert turn in [given for given, _ in other.client().done]
    assert session("launches.feed(500, 0.3)") > 0.05


def test_processes_of_a_container_take_their_turns(make_container: Make, start: Start, arbiter: MakeArbiter) -> None:
    container, other = make_container(LIMIT, 60), arbiter()
    sessions = [start(container) for _ in range(4)]
    for number, session in enumerate(sessions):
        join(session, other, number)
    for session in sessions:
        session.tell("launches.feed(500, 1)")
    shares = [session.answer() for session in sessions]
    assert min(shares) > 0.02
    assert sum(shares) <= 0.6 + 0.1


def test_a_change_of_policy_holds_within_a_second(joined: Joined) -> None:
    session, _, container = joined(20)
    assert session("launches.feed(500, 0.5)") <= 0.25
    container.limit(Limits((CardLimit(ANY_GPU, 1 << 32, 20),), ComputePolicy.BURST))
    time.sleep(SEEN_S)
    assert session("launches.feed(500, 0.5)") > 0.3
    container.limit(Limits((CardLimit(ANY_GPU, 1 << 32, 20),), ComputePolicy.FIXED))
    time.sleep(SEEN_S)
    session("launches.feed(500, 0.1)")
    assert session("launches.feed(500, 0.5)") <= 0.25


def test_each_of_several_cards_is_judged_by_its_own_page(joined: Joined) -> None:
    session, other, container = joined(contended=False)
    assert session("start(1)") == 0
    join(session, other, 1)
    first, second = other.client(0), other.client(1)
    assert [client.uuid for client in (first, second)] == [uuid_bytes(card.uuid) for card in container.world.cards]
    first.page.contended = 1
    assert session("launches.longest(100, 100)") < 0.1
    assert (first.heard, second.heard) == ([], [])
    assert session("start(0)") == 0
    assert session("launches.longest(100, 100)") < 2
    assert first.wants > 0
    assert second.heard == []


def test_random_pages_neither_crash_nor_block_a_client(joined: Joined) -> None:
    session, other, _ = joined()
    page, absurd = other.client().page, (0, 1, 2**31, ANY >> 32, 0x5A5A5A5A)
    session.tell("launches.feed(200, 1.5)")
    until, number = time.monotonic() + 1.4, 0
    while time.monotonic() < until:
        number += 1
        word = absurd[number % len(absurd)]
        page.budget_ns, page.depth_ns = word << 32 | word, word * number % ANY
        page.heartbeat_at, page.fallback_percent = word << (number % 33), word
        page.yield_turn, page.contended = word, number % 3
        other.client().give(word ^ number)
        time.sleep(0.0005)
    assert session.answer() > 0
    page.contended = 0
    time.sleep(0.1)
    assert session("launches.longest(100, 100)") < 2


def hold_jointly(tenant: Tenant) -> None:
    """Replaces the process's turn by one that it holds jointly with others."""
    session, other, _ = tenant
    other.client().page.joint = 1
    other.client().give(0)
    assert session("launches.longest(100, 30)") < 2


def charge_all(tenant: Tenant, kernel: int) -> int:
    """What was charged, when only the last of a few launches is not: a joint turn is charged every 10 ms."""
    session, _, container = tenant
    for _ in range(2):
        time.sleep(0.05)
        session(f"launches.longest_of_one({kernel}, 1)")
    return container.region().cards[0].gpu_ns


def charged_ns(tenant: Tenant, kernel: int, launches: int) -> int:
    """What is charged for launches of a kernel in a joint turn, two more included."""
    before = charge_all(tenant, kernel)
    tenant[0](f"launches.longest_of_one({kernel}, {launches})")
    return charge_all(tenant, kernel) - before


@pytest.mark.parametrize(("us", "launches"), [(20, 3000), (170, 700), (3100, 60), (13000, 20)])
def test_a_joint_turn_charges_all_launches_also_those_that_pass_without_the_lock(
    joined: Joined, us: int, launches: int
) -> None:
    tenant = session, _, _ = joined(budget_ns=ANY, depth_ns=5 * MS)
    kernel = session(f"launches.kernel({us})")
    assert session(f"launches.feed_one({kernel}, {us}, 1)") > 0.5  # its estimate is learned in turns apart
    hold_jointly(tenant)
    asked, charged = us * 1000 * launches, charged_ns(tenant, kernel, launches)
    assert 0.95 * asked - 3 * us * 1000 <= charged <= LATE * asked + 3 * us * 1000


def test_a_first_launch_that_took_long_is_not_charged_for_long_in_a_joint_turn(joined: Joined) -> None:
    tenant = session, _, _ = joined(budget_ns=ANY, depth_ns=5 * MS)
    hold_jointly(tenant)
    kernel = session("launches.cold_kernels(300, 1)[0]")
    for _ in range(20):  # a program that waits for each of its kernels
        session(f"launches.timed_launch({kernel})")
        time.sleep(0.01)
    assert charged_ns(tenant, kernel, 200) == pytest.approx(60 * MS, rel=0.1)


def test_a_kernel_that_is_always_the_last_to_pass_the_lock_is_measured_too(joined: Joined) -> None:
    """The estimate of its first launch uses up what may pass, so the launch behind it would be measured each time."""
    tenant = session, _, container = joined(budget_ns=ANY, depth_ns=5 * MS)
    hold_jointly(tenant)
    cold, others = session("launches.cold_kernels(300, 1)[0]"), session("launches.kernel(20)")
    session(f"launches.serve({cold}, {others}, 5, 200)")
    before = container.region().cards[0].gpu_ns
    session(f"launches.serve({cold}, {others}, 5, 200)")
    assert container.region().cards[0].gpu_ns - before == pytest.approx(200 * 0.4 * MS, rel=0.15)


def test_a_joint_turn_goes_on_until_it_is_taken_and_is_then_asked_for_again(joined: Joined) -> None:
    tenant = session, other, _ = joined(budget_ns=ANY, depth_ns=5 * MS)
    hold_jointly(tenant)
    done, wants = list(other.client().done), other.client().wants
    assert session("launches.feed(50, 0.4)") > 0.3
    assert (other.client().done, other.client().wants) == (done, wants)
    other.gives = False
    other.client().give(0)
    session.tell("launches.longest(50, 3)")
    time.sleep(0.2)
    assert other.client().wants > wants
    other.client().page.joint = 0
    other.client().give(1000)
    assert session.answer() < 2


def test_work_in_flight_in_a_joint_turn_stays_within_the_depth(joined: Joined) -> None:
    tenant = session, _, _ = joined(budget_ns=ANY, depth_ns=5 * MS)
    hold_jointly(tenant)
    assert session("launches.longest(500, 8)") < 2
    begun = time.monotonic()
    assert session("launches.longest(500, 100)") < 0.5
    assert time.monotonic() - begun > 0.030  # 50 ms of kernels, of which about 6 may be in flight


def test_a_fixed_share_is_held_whatever_the_page_says_of_joint_turns(joined: Joined) -> None:
    tenant = session, _, _ = joined(30, budget_ns=ANY)
    hold_jointly(tenant)
    assert session("launches.feed(500, 1)") <= 0.35
