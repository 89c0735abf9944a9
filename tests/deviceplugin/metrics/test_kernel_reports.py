"""Pods whose kernels keep others of their card waiting: what the device plugin tells of them."""

import struct
import time
from dataclasses import fields
from pathlib import Path

from tests.deviceplugin.conftest import World
from tests.deviceplugin.test_uninvited import with_status
from tests.strategies import container
from tests.vgpu.node.builders import uuid
from vgpu.domain import names
from vgpu.domain.formats import region
from vgpu.domain.formats.limits import uuid_bytes
from vgpu.domain.formats.region import Activity

COUNTERS = [counter.name for counter in fields(Activity)][4:]  # after the waits


def write_region(path: Path, **activity: int) -> None:
    """Write a region whose container has these counters on card 0."""
    data = bytearray(region.new().ljust(region.SIZE, b"\0"))
    struct.pack_into("<16sQQQQI", data, 256, uuid_bytes(uuid(0)), 0, 0, 0, 0, 1)
    for name, value in activity.items():
        struct.pack_into("<Q", data, region.ACTIVITY_AT + 128 + 8 * COUNTERS.index(name), value)
    path.write_bytes(data)


async def test_the_pod_whose_kernels_are_long_is_reported_and_no_other(world: World) -> None:
    regions = {}
    for number, name in enumerate(("long", "other")):
        pod = await world.run(name, container("main", gpu_mem=512))
        await with_status(world, name, main=f"{number}" * 64)
        regions[name] = world.kubelet.mount(pod, "/run/vgpu/region")
    kernels = 0

    async def is_reported() -> bool:
        nonlocal kernels
        kernels += 1
        now_ns = time.monotonic_ns()
        took = {"long_kernels": kernels, "long_kernel_ns": kernels * 700_000_000}
        write_region(regions["long"], last_launch_at_ns=now_ns, **took)
        write_region(regions["other"], last_launch_at_ns=now_ns)
        refusals = (await world.gpunode())["status"].get("refusals", [])
        told = [report for report in refusals if report["reason"] == names.LONG_KERNELS]
        assert all(report["pod"] == "default/long" and not report["evict"] for report in told)
        return any("kernels of about 0.7 s on card 0" in report["message"] for report in told)

    await world.until(is_reported)
