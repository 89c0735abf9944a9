"""Every total of a node's metrics, beside its sum by hand.

Two cards of 2,048 MiB (8 slices): `a` with 512 MiB and 30 %, `b` with 256 MiB, and `two` with 768 MiB and 40 % of each.
`c`, of 256 MiB, has ended.
"""

import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.deviceplugin.conftest import World
from tests.deviceplugin.metrics.test_metrics import has_not, scraped, served
from tests.deviceplugin.test_uninvited import use, with_status
from tests.strategies import container
from tests.vgpu.node.builders import uuid
from vgpu.domain.cards.measured_use import WAIT_CAUSES
from vgpu.domain.formats import region
from vgpu.domain.formats.limits import uuid_bytes
from vgpu.domain.quantity import MIB

__all__ = ["served"]  # a fixture
NS_PER_S = 1_000_000_000


class Share(NamedTuple):
    """A container's part of a card, and what its region says: MiB in use and at most, seconds in turns."""

    pod: str
    card: int
    limit_mib: int
    percent: int
    used_mib: int
    peak_mib: int
    turns_s: int


SHARES = (
    Share("a", 0, 512, 30, 400, 500, 3),
    Share("b", 0, 256, 0, 20, 100, 1),
    Share("two", 0, 768, 40, 700, 700, 2),
    Share("two", 1, 768, 40, 600, 650, 4),
)
REQUESTS: Mapping[str, tuple[dict[str, int], dict[str, object]]] = {
    "a": ({"gpu_mem": 512, "gpu_cores": 30}, {}),
    "b": ({"gpu_mem": 256}, {}),
    "two": ({"gpu": 2, "gpu_mem": 1536, "gpu_cores": 80}, {"gpus": {"main": (0, 1)}}),
    "c": ({"gpu_mem": 256}, {}),
}


def write_region(path: Path, shares: list[Share], part: float) -> None:
    """Write a region that has a part of what the shares say of time."""
    data = bytearray(region.new().ljust(region.SIZE, b"\0"))
    for place, share in enumerate(shares):
        at = 256 + 256 * place
        sizes = (share.used_mib * MIB, share.limit_mib * MIB, share.peak_mib * MIB)
        struct.pack_into("<16sQQQQI", data, at, uuid_bytes(uuid(share.card)), *sizes, 0, 1)
        struct.pack_into("<Q", data, at + 168, int(part * share.turns_s * NS_PER_S))
        for cause in range(len(WAIT_CAUSES)):
            waited_ns = int(part * share.turns_s * (cause + 1) * NS_PER_S) // 10
            struct.pack_into("<QQ", data, region.ACTIVITY_AT + 256 * place + 16 * cause, waited_ns, share.turns_s)
    path.write_bytes(data)


class Scrape:
    """The samples of one scrape."""

    def __init__(self, text: str) -> None:
        families = text_string_to_metric_families(text)
        self._samples = [sample for family in families for sample in family.samples]

    def total(self, name: str, **labels: str) -> float:
        """The sum of a metric's samples that have these labels."""
        return round(sum(value for value in self.values(name, **labels)), 6)

    def values(self, name: str, **labels: str) -> list[float]:
        return [found.value for found in self._samples if found.name == name and labels.items() <= found.labels.items()]


Total = tuple[str, object, object]  # what, value, by hand


def totals(found: Scrape) -> Iterator[Total]:
    for card in (0, 1):
        on_card = {"gpu_uuid": str(uuid(card))}
        here = [share for share in SHARES if share.card == card]
        for name, by_hand in {
            "memory_limit_bytes": sum(share.limit_mib for share in here) * MIB,
            "memory_used_bytes": sum(share.used_mib for share in here) * MIB,
            "memory_peak_bytes": sum(share.peak_mib for share in here) * MIB,
            "memory_nvml_bytes": sum(NVML_MIB[share.pod] for share in here) * MIB,
            "cores_ratio": sum(share.percent for share in here) / 100,
            "gpu_seconds_total": sum(share.turns_s for share in here),
            "turn_seconds_total": sum(share.turns_s for share in here),
            "processes": len(here),
        }.items():
            yield f"vgpu_container_{name}, card {card}", found.total(f"vgpu_container_{name}", **on_card), by_hand
        for place, cause in enumerate(WAIT_CAUSES, 1):
            waited = found.total("vgpu_container_wait_seconds_total", cause=cause, **on_card)
            yield f"waits, {cause}, card {card}", waited, sum(share.turns_s for share in here) * place / 10
        slices = sum(share.limit_mib for share in here) // 256
        yield f"vgpu_card_held_slices, card {card}", found.values("vgpu_card_held_slices", **on_card), [slices]
        of_dcgm = {"UUID": str(uuid(card))}
        for name, mib in {
            "USED": sum(share.used_mib for share in here),
            "FREE": sum(share.limit_mib - share.used_mib for share in here),
        }.items():
            yield f"DCGM_FI_DEV_FB_{name}, card {card}", found.total(f"DCGM_FI_DEV_FB_{name}", **of_dcgm), mib
    yield "held slices of the node", found.total("vgpu_card_held_slices"), (512 + 256 + 2 * 768) // 256
    yield "vgpu_card_healthy", found.total("vgpu_card_healthy"), 2
    yield "vgpu_node_unreadable_regions", found.values("vgpu_node_unreadable_regions"), [0]


NVML_MIB = {"a": 410, "b": 30, "two": 710}  # of each process; `two` has one that uses both cards


@pytest.mark.heavy
async def test_every_total_of_a_node_is_the_sum_by_hand(idle_world: World, served: str) -> None:
    regions = {}
    for number, (name, (amounts, more)) in enumerate(REQUESTS.items()):
        pod = await idle_world.run(name, container("main", **amounts), **more)
        container_id = f"{number}" * 64
        await with_status(idle_world, name, main=container_id)
        shares = [share for share in SHARES if share.pod == name]
        for share in shares:
            use(idle_world, share.card, pod, 4000 + number, container_id)
            idle_world.driver.memory[4000 + number] = NVML_MIB[name] * MIB
        regions[name] = idle_world.kubelet.mount(pod, "/run/vgpu/region")
        write_region(regions[name], shares, 0)
    await idle_world.end(pod)
    await idle_world.until(lambda: has_not(served, 'pod="c"'))
    for name, path in regions.items():
        write_region(path, [share for share in SHARES if share.pod == name], 1)
    wrong: list[Total] = []

    async def is_right() -> bool:
        rows = list(totals(Scrape(await scraped(served))))
        wrong[:] = [row for row in rows if row[1] != row[2]]
        return not wrong and len(rows) > 30

    try:
        await idle_world.until(is_right, within_s=20)
    except TimeoutError:
        assert wrong == []
        raise
