"""Kernels of 0.1 and 0.7 s beside kernels of 0.5 ms, on the simulated driver, whose time slices are as measured.

Kernels of 3 s, and all shares, are tested in virtual time (tests/arbiter/test_long_kernels.py).
"""

import pytest

from tests.arbiter.conftest import built_arbiter, idle_node
from tests.limiter.compute.test_tenants import Tenants, reached, tenants

pytestmark = pytest.mark.slow

__all__ = ["built_arbiter", "idle_node", "tenants"]  # fixtures

POINTS = 0.04  # three, and one for a busy machine


@pytest.mark.parametrize("in_flight", [1, 2])
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
