"""How often the admin's process asks the extender for a snapshot."""

import asyncio

from extender.admin.assembly import KeptSnapshot
from extender.admin.exchange.snapshots import ClusterSnapshot
from tests.extender.admin.conftest import Admin, CopiedSnapshots, shown
from tests.extender.conftest import World


class Counted(CopiedSnapshots):
    taken = 0

    async def take(self) -> ClusterSnapshot:
        self.taken += 1
        return await super().take()


async def test_requests_of_half_a_second_share_a_snapshot(world: World) -> None:
    source = Counted(shown(world))
    kept = KeptSnapshot(source, world.clock)
    first = await asyncio.gather(*(kept.get() for _ in range(5)))
    assert source.taken == 1
    assert len({snapshot.number for snapshot in first}) == 1
    world.clock.seconds += 0.4
    await kept.get()
    assert source.taken == 1
    world.clock.seconds += 0.2
    assert (await kept.get()).number == first[0].number + 1


async def test_a_request_after_half_a_second_sees_what_is_new(admin: Admin) -> None:
    before = len((await admin.get("/pods"))["items"])
    await admin.world.create_pod(gpu_mem=256)
    await admin.fresh()
    assert len((await admin.get("/pods"))["items"]) == before + 1
