"""Kernels of 0.1 and 0.7 s beside kernels of 0.5 ms, on the simulated driver, whose time slices are as measured.

Kernels of 3 s, and all shares, are tested in virtual time (tests/arbiter/test_long_kernels.py).
"""

import pytest

from tests.arbiter.conftest import built_arbiter, idle_node
from tests.limiter.compute.test_tenants import Tenant, Tenants, reached, tenants
from tests.limiter.jobs.endless_kernels import EndlessKernels
from vgpu.domain.formats import region
from vgpu.domain.formats.region import CardUse

pytestmark = pytest.mark.slow

__all__ = ["built_arbiter", "idle_node", "tenants"]  # fixtures

POINTS = 0.04  # three, and one for a busy machine


@pytest.mark.parametrize("in_flight", [1, 2, 8])
@pytest.mark.parametrize(("short", "long", "us"), [(0.3, 0.6, 690_000), (0.6, 0.3, 100_000)])
def test_both_have_their_shares(tenants: Tenants, short: float, long: float, us: int, in_flight: int) -> None:
    """In an attempt in which the machine was busy, the shares may be missed."""
    first, second = tenants.add(round(short * 100)), tenants.add(round(long * 100))

    def is_kept() -> bool:
        first.session.tell("launches.steady_share(500, 12, 40, 3)")
        second.session.tell(f"launches.steady_share({us}, 12, {in_flight}, 3)")
        got = float(first.session.answer()), float(second.session.answer())
        return abs(got[0] - short) <= POINTS and abs(got[1] - long) <= POINTS

    assert reached(is_kept)


def account_of(tenant: Tenant) -> CardUse:
    return region.decode((tenant.folder.folder / "region").read_bytes()).cards[0]


def test_long_kernels_are_counted(tenants: Tenants) -> None:
    tenant = tenants.add(60)
    tenant.session("[launches.feed_waited_for(1000, 100), launches.feed_waited_for(100_000, 8)]")
    activity = account_of(tenant).activity
    assert 5 <= activity.long_kernels <= 8  # not the first one, and the last one is measured by the next launch
    assert 0.0999e9 <= activity.long_kernel_ns / activity.long_kernels <= 0.13e9  # less the launch itself, in the host


def test_tenants_that_work_have_no_endless_kernels(tenants: Tenants) -> None:
    """Small programs, which may have turns jointly, and one with kernels of 0.1 s."""
    small, long = [tenants.add(20, "burst") for _ in range(3)], tenants.add(40, "burst")
    names = {str(number): (one.folder, [one.session]) for number, one in enumerate([*small, long])}
    for one in small:
        one.session.tell("launches.feed_ahead(200, 10)")
    long.session.tell("launches.feed_ahead(100_000, 10, 200_000)")
    assert EndlessKernels(tenants.world, names).found_within(9) == []


def test_an_endless_kernel_is_found_within_ten_seconds(tenants: Tenants) -> None:
    endless, other = tenants.add(30), tenants.add(60)
    both = {"endless": endless, "other": other}
    watched = EndlessKernels(tenants.world, {name: (one.folder, [one.session]) for name, one in both.items()})
    other.session.tell("launches.feed_ahead(500, 15)")
    endless.session.tell("launches.feed_waited_for(10**9, 1)")
    assert watched.found_within(10) == [("endless", tenants.world.cards[0].uuid)]
    assert other.session.answer() > 0.15  # what the time slices leave
