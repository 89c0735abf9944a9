"""Kernels of 0.1 and 0.7 s beside kernels of 0.5 ms, on the simulated driver, whose time slices are as measured.

Kernels of 3 s, and all shares, are tested in virtual time (tests/arbiter/test_long_kernels.py).
"""

import sys
import time
from typing import TYPE_CHECKING

import pytest

from tests.arbiter.conftest import built_arbiter, idle_node
from tests.limiter.compute.test_tenants import Tenant, Tenants, reached, tenants
from tests.vgpu.adapters.test_nvml import SESSION, Session
from vgpu.adapters.nvml.records import BusySamples
from vgpu.domain.formats import region
from vgpu.domain.formats.region import CardUse
from vgpu.domain.identifiers import ContainerName, PodUid
from vgpu.node.usage.long_kernels import KernelLengths

if TYPE_CHECKING:
    from vgpu.node.usage.gpu_time import Use

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


def test_an_endless_kernel_is_found_within_ten_seconds(tenants: Tenants) -> None:
    """By NVML's samples and the regions, as the device plugin looks each second."""
    both = {PodUid("endless"): tenants.add(30), PodUid("other"): tenants.add(60)}
    endless, other = both.values()
    gpu = tenants.world.cards[0].uuid
    uses: dict[Use, Tenant] = {(uid, ContainerName("main"), gpu): tenant for uid, tenant in both.items()}
    owners: dict[tuple[str, int], Use | None] = {(gpu, one.session.process.pid): use for use, one in uses.items()}
    nvml = Session(tenants.world.state, tenants.world.start(sys.executable, "-c", SESSION))
    nvml("globals().update(nvml=Nvml())")
    lengths, sampled_us = KernelLengths(), 0
    other.session.tell("launches.feed_ahead(500, 15)")
    endless.session.tell("launches.feed_waited_for(10**9, 1)")
    begun = time.monotonic()
    while not lengths.endless_s and time.monotonic() < begun + 12:
        time.sleep(1)
        read = nvml(f"asdict(nvml.busy_samples({{{gpu!r}: {sampled_us}}})[{gpu!r}])")
        processes = tuple((pid, at, share) for pid, at, share in read["processes"])
        sampled_us = max((at for _, at, _ in processes), default=sampled_us)
        held: dict[Use, CardUse | None] = {use: account_of(tenant) for use, tenant in uses.items()}
        lengths.look(held, {gpu: BusySamples(processes=processes)}, owners, time.monotonic_ns())  # type: ignore[arg-type]
    assert [uid for uid, _, _ in lengths.endless_s] == ["endless"]
    assert time.monotonic() < begun + 10
    assert other.session.answer() > 0.15  # what the time slices leave
