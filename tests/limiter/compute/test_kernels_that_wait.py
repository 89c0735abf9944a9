"""Kernels that wait for what their program does later: its launches are not held back for long (ADR 170).

Times are loose, because the machine may be busy. Where launches were held back until the work before them had drained,
each delay kernel gave up after 0.1 s, and 20 timings took 10 s at a share of 20 percent.
"""

import time
from collections.abc import Callable

import pytest

from tests.limiter.compute.test_launches import ALLOWANCE, LIMIT, start
from tests.limiter.compute.test_tenants import Tenants, built_arbiter, idle_node, reached, tenants
from tests.limiter.conftest import Container

pytestmark = pytest.mark.slow

__all__ = ["built_arbiter", "idle_node", "tenants"]  # fixtures

Make = Callable[..., Container]
SHARES = (20, 40, 60)
OVERDRAFT = 0.05  # seconds of GPU time that may be used before the share pays for them


@pytest.mark.parametrize("cores", SHARES)
@pytest.mark.parametrize("timed", [1, 5])
def test_delay_kernels_do_not_give_up(make_container: Make, cores: int, timed: int) -> None:
    timings = start(make_container(LIMIT, cores))(f"delays.timings(20, 100, {timed})")
    assert timings["given_up"] == 0
    assert timings["seconds"] < 2
    assert timings["shortest_ms"] == pytest.approx(timed * 0.1, rel=0.1)


@pytest.mark.parametrize("cores", SHARES)
def test_kernels_that_are_known_do_not_give_up_either(make_container: Make, cores: int) -> None:
    timings = start(make_container(LIMIT, cores))("delays.timings(20, 100, new_kernels=False)")
    assert timings["given_up"] == 0
    assert timings["seconds"] < 2


@pytest.mark.parametrize("policy", ["fixed", "burst"])
def test_delay_kernels_do_not_give_up_beside_another_container(tenants: Tenants, policy: str) -> None:
    tuner, neighbour = tenants.add(40, policy), tenants.add(40, policy)
    tuner.session("launches.longest(10, 5)")
    neighbour.session.tell("launches.feed_ahead(500, 300)")
    time.sleep(1)  # until turns are taken
    assert reached(lambda: tuner.session("delays.timings(20, 100)")["given_up"] == 0)


def test_what_the_host_does_after_a_timing_is_not_charged(make_container: Make) -> None:
    """A program compiles for 50 ms between two timings of 0.2 ms, whose delay kernels spin for some ms."""
    container, rounds, host = make_container(LIMIT, 60), 12, 0.05
    session = start(container)
    session("delays.timings(3, 200)")
    before = container.region().cards[0].gpu_ns
    for _ in range(rounds):
        session("delays.timings(1, 200)")
        time.sleep(host)
    session("launches.feed(20, 0.01)")
    charged = (container.region().cards[0].gpu_ns - before) / 1e9
    assert charged < rounds * host / 2


@pytest.mark.parametrize("cores", SHARES)
def test_a_kernel_that_waits_for_another_stream_ends_soon(make_container: Make, cores: int) -> None:
    session = start(make_container(LIMIT, cores))
    assert reached(lambda: session("delays.spin_beside_a_stream(20, 100)") < 2)


@pytest.mark.parametrize("cores", SHARES)
def test_a_kernel_that_waits_for_another_card_ends_soon(make_container: Make, cores: int) -> None:
    session = start(make_container(LIMIT, cores))
    assert max(session("delays.spin_on_another_card(5, 100, 0.3)")) < 0.5


def test_launches_beside_a_kernel_that_does_not_end_are_held_back_for_a_second_at_most(make_container: Make) -> None:
    session = start(make_container(LIMIT, 20))
    assert max(session("delays.launches_beside_an_endless_kernel(150, 500)")) < 1.5


@pytest.mark.parametrize(
    "load",
    [
        "delays.feed_beside_spins(500, {seconds}, 0.1)",  # always something that may wait for the next launch
        "delays.feed_beside_a_spin_on_another_card(500, {seconds})",
        "delays.feed_new(7000, {seconds})",  # longer than kernels without an estimate are waited for
        "launches.feed(7000, {seconds})",
    ],
)
def test_a_program_that_uses_its_overdraft_as_much_as_it_can_stays_within_it(make_container: Make, load: str) -> None:
    seconds = 3
    share = start(make_container(LIMIT, 20))(load.format(seconds=seconds))
    assert share <= 0.2 + OVERDRAFT / seconds + ALLOWANCE


def test_long_kernels_of_which_two_are_in_flight_keep_to_the_share(make_container: Make) -> None:
    """The turn goes on while the first may be waiting for the second, until the first is found to work."""
    seconds, kernel = 4, 0.1
    share = start(make_container(LIMIT, 20))(f"launches.steady_share({kernel * 1e6:.0f}, {seconds}, 2, 2)")
    assert share <= 0.2 + kernel / seconds + ALLOWANCE


def test_long_kernels_of_which_many_are_in_flight_keep_to_the_share(make_container: Make) -> None:
    """The program waits for one of eight: two go early, and one more each second until the first has ended."""
    seconds, kernel = 8, 0.7
    share = start(make_container(LIMIT, 50))(f"launches.steady_share({kernel * 1e6:.0f}, {seconds}, 8, 6)")
    assert share <= 0.5 + kernel / seconds + ALLOWANCE


@pytest.mark.parametrize("policy", ["fixed", "burst"])
def test_a_fixed_share_is_kept_beside_kernels_that_spin_all_the_time(tenants: Tenants, policy: str) -> None:
    """Before, half of the neighbour's turns ended for a moment without work, in which its share was charged."""
    spinning, neighbour = tenants.add(40, policy), tenants.add(50)

    def is_kept() -> bool:
        spinning.session.tell("delays.feed_beside_spins(500, 5, 0.1)")
        got = neighbour.session("launches.steady_share(1000, 4, 8, 1)")
        spinning.session.answer()
        return 0.46 <= float(got) <= 0.53

    assert reached(is_kept)
