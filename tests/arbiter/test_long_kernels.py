"""Shares beside kernels of 0.1 to 3 s, in virtual time. `python -m tests.arbiter.test_long_kernels` prints them all.

The simulated card has no time slices, so a tenant that is given a turn beside a running kernel waits for its end. What
slices do is tested on the simulated driver (tests/limiter/compute/test_long_kernels.py).
"""

import itertools
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.arbiter.conftest import compile_modules
from tests.arbiter.simulation import (
    MS,
    SECOND,
    US,
    FalseClient,
    Process,
    Tenant,
    WaitingForEach,
    World,
    demand,
)

pytestmark = pytest.mark.heavy

MakeWorld = Callable[..., World]
KERNELS = (100 * MS, 700 * MS, 3000 * MS)
KINDS = (Process, WaitingForEach)
CORES = ((30, 60), (50, 40), (10, 80), (80, 10), (10, 90), (90, 10))


def shares_beside(world: World, short: int, long: int, kernel: int, kind: type[Process]) -> list[float]:
    """Shares of kernels of 0.5 ms and of `kernel`, in periods after which the latter has repaid a kernel."""
    Process(world, world.tenant(demand(short)), 500 * US)
    kind(world, world.tenant(demand(long)), kernel)
    world.run(10 * kernel)
    return world.shares(max(30 * SECOND, 100 * kernel))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("cores", CORES)
def test_both_have_their_shares(
    make_world: MakeWorld, cores: tuple[int, int], kernel: int, kind: type[Process]
) -> None:
    assert shares_beside(make_world(), *cores, kernel, kind) == pytest.approx(cores, abs=3)


@pytest.mark.parametrize("policies", [("fixed", "burst"), ("burst", "fixed"), ("burst", "burst")])
def test_guarantees_hold_beside_long_kernels_of_burst_tenants(make_world: MakeWorld, policies: tuple[str, str]) -> None:
    world = make_world()
    Process(world, world.tenant(demand(30, policies[0])), 500 * US)
    WaitingForEach(world, world.tenant(demand(60, policies[1])), 700 * MS)
    world.run(7 * SECOND)
    short, long = world.shares(70 * SECOND)
    assert short >= 27
    assert long >= 57


def test_two_tenants_with_long_kernels_leave_a_third_its_share(make_world: MakeWorld) -> None:
    world = make_world()
    Process(world, world.tenant(demand(10)), 500 * US)
    for cores in (30, 50):
        WaitingForEach(world, world.tenant(demand(cores)), 3 * SECOND)
    world.run(30 * SECOND)
    assert world.shares(300 * SECOND) == pytest.approx((10, 30, 50), abs=3)


class Busy(FalseClient):
    """A client that never ends a turn, and whose region always says that the card is busy for 3.9 s more."""

    def __init__(self, world: World, tenant: Tenant) -> None:
        super().__init__(world, tenant, None)
        self.lie()

    def step(self) -> None:
        super().step()
        self.tenant.busy_until = self.world.now + 3900 * MS

    def lie(self) -> None:
        self.tenant.busy_until = self.world.now + 3900 * MS
        self.world.at(self.world.now + 10 * MS, self.lie)


@pytest.mark.parametrize("policy", ["fixed", "burst"])
@pytest.mark.parametrize("is_announced", [False, True])
def test_false_long_kernels_pay_for_what_they_hold(make_world: MakeWorld, policy: str, *, is_announced: bool) -> None:
    """The other tenants wait no longer than for an honest tenant, and their shares hold."""
    world = make_world()
    honest = [Process(world, world.tenant(demand(cores))) for cores in (40, 20)]
    false = world.tenant(demand(30, policy))
    if is_announced:
        FalseClient(world, false, 9 * MS, 3900 * MS, 0)
    else:
        Busy(world, false)
    world.run(20 * SECOND)
    for process in honest:
        process.waits.clear()
    got = world.shares(120 * SECOND)
    assert got[:2] == pytest.approx((40, 20), abs=4)
    assert max(max(process.waits) for process in honest) <= 4400 * MS


def test_a_wait_for_the_turn_is_no_work_that_may_go_on(make_world: MakeWorld) -> None:
    """A process has the card's turn and does not use it, because another one of its container has the container's."""
    world = make_world()
    honest, waiting = Process(world, world.tenant(demand(40))), world.tenant(demand(30, "burst"))
    waiting.is_waiting = True
    Busy(world, waiting)
    world.run(20 * SECOND)
    honest.waits.clear()
    world.run(60 * SECOND)
    assert max(honest.waits) <= 200 * MS


def lines() -> Iterator[str]:
    """The shares of all lengths, shares and kinds."""
    with tempfile.TemporaryDirectory() as folder:
        library = compile_modules(Path(folder))
    for kernel, cores, kind in itertools.product(KERNELS, CORES, KINDS):
        with World(library) as world:
            got = shares_beside(world, *cores, kernel, kind)
        yield f"{kernel // MS:5} ms, {kind.__name__:14} fixed {cores}: {got[0]:.1f} and {got[1]:.1f} %"


if __name__ == "__main__":
    for line in lines():
        sys.stdout.write(f"{line}\n")
