"""Containers that share a simulated card by the node's arbiter, which is the real one.

Shares are asserted loosely, for the machine may be busy; `tests/arbiter` holds who comes next to the point, and
`benchmarks.limiter_compute` the shares of a real card.
"""

import signal
import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from limiter import launch
from tests.arbiter.conftest import Container as Folder
from tests.arbiter.conftest import Node, built_arbiter, idle_node, until
from tests.driver.conftest import Session, World
from vgpu.limits import CardLimit, Limits
from vgpu.policy import ComputePolicy

__all__ = ["built_arbiter", "idle_node"]  # fixtures

SECONDS = 1.5
ALLOWANCE = 0.04  # on a busy machine, of which the definition has 10 ms and a kernel
GIB = 1 << 30


@dataclass(frozen=True, slots=True)
class Tenant:
    """A container with one started process."""

    folder: Folder
    session: Session


class Tenants:
    """The containers of a card, and the arbiter beside them."""

    def __init__(self, world: World, node: Node) -> None:
        self.world, self.node = world, node

    def asked(self, cores: int, policy: str) -> Limits:
        return Limits((CardLimit(self.world.cards[0].uuid, 4 * GIB, cores),), ComputePolicy(policy))

    def add(self, cores: int, policy: str = "fixed") -> Tenant:
        folder = self.node.add(self.asked(cores, policy))
        until(folder.socket.exists)
        return Tenant(folder, self._start(folder))

    def _start(self, folder: Folder) -> Session:
        env = launch.variables(folder.folder, {})
        session = self.world.session(**{**env, "VGPU_ARBITER_SOCKET": str(folder.socket)})
        assert session("start()") == 0
        return session

    def join(self, tenant: Tenant) -> Tenant:
        """One more process of its container."""
        return Tenant(tenant.folder, self._start(tenant.folder))

    def feed(self, *tenants: Tenant, us: int = 500, seconds: float = SECONDS) -> list[float]:
        """The shares of the card that they get when all of them launch such kernels, after a while."""
        for tenant in tenants:
            tenant.session.tell(f"[launches.feed_ahead({us}, 0.8), launches.feed_ahead({us}, {seconds})][1]")
        return [float(tenant.session.answer()) for tenant in tenants]


@pytest.fixture
def tenants(world: World, idle_node: Node) -> Iterator[Tenants]:
    idle_node.start()
    return Tenants(world, idle_node)


@pytest.mark.parametrize(
    ("asked", "policy"),
    [((30, 60), "fixed"), ((30, 60), "burst"), ((10, 20, 30, 35), "fixed"), ((50, 50), "burst")],
)
def test_containers_get_what_they_asked_for(tenants: Tenants, asked: tuple[int, ...], policy: str) -> None:
    all_of_them = [tenants.add(cores, policy) for cores in asked]
    shares = tenants.feed(*all_of_them)
    for cores, share in zip(asked, shares, strict=True):
        assert share >= 0.75 * cores / 100
        assert policy != "fixed" or share <= cores / 100 + ALLOWANCE
    assert sum(shares) > 0.75


def test_who_has_no_share_takes_what_the_others_leave(tenants: Tenants) -> None:
    limited, free = tenants.add(30), tenants.add(100)
    shares = tenants.feed(limited, free)
    assert 0.2 < shares[0] <= 0.3 + ALLOWANCE
    assert 0.4 < shares[1] < 0.75


def test_a_neighbour_that_is_idle_leaves_its_share_and_gets_it_back(tenants: Tenants) -> None:
    first, second = tenants.add(50, "burst"), tenants.add(50, "burst")
    assert tenants.feed(first, second)[0] < 0.6
    assert tenants.feed(first)[0] > 0.7
    assert tenants.feed(first, second)[1] > 0.3


def test_best_effort_gives_way_and_does_not_starve(tenants: Tenants) -> None:
    online, offline = tenants.add(60), tenants.add(0, "best-effort")
    shares = tenants.feed(online, offline)
    assert shares[0] > 0.45
    assert shares[1] > 0.1


def test_an_answer_is_not_late_beside_one_that_burns(tenants: Tenants) -> None:
    burner, inference = tenants.add(50, "burst"), tenants.add(50, "burst")
    burner.session.tell("launches.feed_ahead(500, 3)")
    inference.session("launches.answers(450, 1)")  # until it is known as one that waits
    taken = inference.session("launches.answers(450, 1.5)")
    assert burner.session.answer() > 0.5
    assert statistics.median(taken) < 0.006  # alone: 0.001; and the longest turn of the burner takes 10 ms


def test_the_processes_of_a_container_have_its_share_together(tenants: Tenants) -> None:
    many, one = tenants.add(50), tenants.add(50)
    more = [tenants.join(many) for _ in range(7)]
    shares = tenants.feed(one, many, *more)
    assert 0.3 < shares[0] <= 0.5 + ALLOWANCE
    assert 0.3 < sum(shares[1:]) <= 0.5 + 8 * ALLOWANCE
    assert min(shares[1:]) > 0


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
def test_without_the_arbiter_shares_are_kept_and_with_it_again(tenants: Tenants, how: signal.Signals) -> None:
    small, large = tenants.add(20, "burst"), tenants.add(60)
    tenants.feed(small, large)
    arbiter = tenants.node.process
    assert arbiter is not None
    arbiter.send_signal(how)
    alone = tenants.feed(small, large)
    assert alone[0] <= 0.2 + ALLOWANCE
    assert alone[1] <= 0.6 + ALLOWANCE
    if how == signal.SIGSTOP:
        arbiter.send_signal(signal.SIGCONT)
    else:
        arbiter.communicate()
        tenants.node.start()
    again = tenants.feed(small, large)
    assert again[0] > 0.2  # idle time is lent once more
    assert again[1] <= 0.6 + ALLOWANCE


@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGSTOP])
def test_a_tenant_that_ends_in_its_turn_holds_nobody_up(tenants: Tenants, ending: signal.Signals) -> None:
    other, tenant = tenants.add(50, "burst"), tenants.add(50, "burst")
    other.session.tell("launches.feed_ahead(500, 30)")
    tenants.feed(tenant, seconds=0.3)
    other.session.process.send_signal(ending)
    assert tenant.session("launches.longest(500, 200)") < 1
    assert tenants.feed(tenant, seconds=1)[0] > 0.6


def test_a_changed_share_holds_within_two_seconds(tenants: Tenants) -> None:
    changed, other = tenants.add(60), tenants.add(30)
    tenants.feed(changed, other, seconds=0.5)
    changed.folder.limit(tenants.asked(20, "fixed"))
    time.sleep(1.2)  # and 0.8 s in which they feed unmeasured
    assert tenants.feed(changed, other)[0] <= 0.2 + ALLOWANCE
