"""Five-minute series say what the plugin's metrics say of the same time: from the region to the history's database."""

import re
import struct
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from extender.history.recording import lines, node_usage
from extender.history.recording.events import Decision, PodName, PodOwner, Record
from extender.history.reporting.prices import Prices
from extender.history.reporting.reports import MeasuredFigure
from extender.history.reporting.sql_reports import SqlReports
from extender.history.storage import database, ingest
from extender.state.fields import card_use, container_use
from tests.deviceplugin.conftest import World
from tests.deviceplugin.metrics.test_metrics import has, scraped, served
from tests.deviceplugin.test_uninvited import ID, use, with_status
from tests.strategies import container
from tests.vgpu.node.builders import uuid
from vgpu.adapters.nvml.records import BusySamples
from vgpu.domain.cards.measured_use import WAIT_CAUSES
from vgpu.domain.formats import region
from vgpu.domain.formats.limits import uuid_bytes
from vgpu.domain.identifiers import Namespace, NodeName, PodUid
from vgpu.domain.quantity import MIB
from vgpu.node.usage.sampler import PERIOD_S

__all__ = ["served"]  # a fixture
NS_PER_S = 1_000_000_000


def used(path: Path, gpu_s: int, mib: int) -> None:
    """Write the region of a container that has used a card; it waited for each cause for another time."""
    data = bytearray(region.new().ljust(region.SIZE, b"\0"))
    struct.pack_into("<16sQQQQI", data, 256, uuid_bytes(uuid(0)), mib * MIB, 512 * MIB, mib * MIB, 0, 1)
    struct.pack_into("<Q", data, 256 + 168, gpu_s * NS_PER_S)
    for place in range(len(WAIT_CAUSES)):
        struct.pack_into("<QQ", data, region.ACTIVITY_AT + 16 * place, gpu_s * (place + 1) * NS_PER_S // 10, gpu_s)
    path.write_bytes(data)


async def reported(world: World, after_ms: float) -> bool:
    """Whether the GPUNode lists what was measured after a time, in Unix milliseconds, of container and card."""
    status = (await world.gpunode()).get("status", {})
    times = [entry["untilMs"] for kind in ("usage", "cardUse") for entry in status.get(kind, [])]
    return bool(status.get("usage")) and min(times) > after_ms


def records(status: dict[str, Any]) -> list[Record]:
    """What the extender records of a GPUNode's status, as it is written to disk and read again."""
    node = NodeName("n1")
    uses = [node_usage.used(node, found) for found_of in container_use.decode(status).values() for found in found_of]
    cards = [node_usage.card_measured(node, found) for found in card_use.decode(status)]
    return [*uses, *cards]


async def metrics(url: str) -> dict[str, float]:
    """The values of metrics of card 0, by name and cause."""
    found = {}
    for line in (await scraped(url)).split("\n"):
        if f'gpu_uuid="{uuid(0)}"' in line and line.startswith("vgpu_"):
            cause = re.search('cause="([a-z]+)"', line)
            found[line.partition("{")[0] + (f" {cause[1]}" if cause else "")] = float(line.split()[-1])
    return found


@pytest.mark.heavy
async def test_series_are_equal_to_the_metrics_of_the_same_time(idle_world: World, served: str, tmp_path: Path) -> None:
    statuses = []
    pod = await idle_world.run("p", container("main", gpu_mem=512))
    await with_status(idle_world, "p", main=ID)
    use(idle_world, 0, pod)
    await idle_world.until(lambda: has(served, "vgpu_container_gpu_seconds_total{"))
    for gpu_s, mib in ((1, 20), (3, 60)):
        written_us = int(time.time() * 1e6)
        busy = ((written_us - 1_000_000, 0.0), (written_us, 0.75))
        idle_world.driver.samples[uuid(0)] = BusySamples(busy, ((4711, written_us, 0.5),))
        used(idle_world.kubelet.mount(pod, "/run/vgpu/region"), gpu_s, mib)
        measured_ms = written_us / 1000 + 2 * 1000 * PERIOD_S
        await idle_world.until(partial(reported, idle_world, measured_ms), within_s=20)
        statuses.append((await idle_world.gpunode())["status"])
    told = await metrics(served)

    engine = database.engine(database.sqlite_url(tmp_path / "h.db"))
    database.migrate(engine)
    named = PodName(PodUid(pod["metadata"]["uid"]), Namespace("default"), "p")
    decision = Decision(named, NodeName("n1"), 0, 0, PodOwner("", ""), {}, (), (), {})
    with database.writing(engine) as connection:
        for record in (decision, *records(statuses[0]), *records(statuses[1])):
            ingest.ingest(connection, [lines.decode(lines.encode(record).rstrip())])
    reports = SqlReports(engine, Prices(), lambda: int(time.time() * 1000))
    found = reports.card_series(NodeName("n1"), uuid(0), 0, 1 << 42)
    (series,) = found.containers.containers
    engine.dispose()

    assert told["vgpu_container_gpu_seconds_total"] > 0
    assert total(series.figures, "used_ms") == whole_ms(told["vgpu_container_gpu_seconds_total"], series.figures)
    assert (series.figures[-1].used_mib or 0) * MIB == told["vgpu_container_memory_used_bytes"] == 60 * MIB
    for place, cause in enumerate(WAIT_CAUSES):
        waited = sum(figure.wait_ms[place] for figure in series.figures)
        assert waited == 300 * (place + 1)
        assert waited == whole_ms(told[f"vgpu_container_wait_seconds_total {cause}"], series.figures)
    last = found.figures[-1]
    assert total(found.figures, "used_ms") == whole_ms(told["vgpu_card_busy_seconds_total"], found.figures)
    assert (last.used_mib or 0) * MIB == told["vgpu_card_memory_used_bytes"]
    assert (last.celsius, last.watts) == (told["vgpu_card_temperature_celsius"], told["vgpu_card_power_watts"])


def whole_ms(seconds: float, figures: Sequence[object]) -> Any:
    """Equal to the sum of figures that are whole milliseconds, of `seconds` together."""
    return pytest.approx(seconds * 1000, abs=len(figures))


def total(figures: tuple[MeasuredFigure, ...], name: str) -> int:
    """The sum of a figure."""
    return sum(getattr(figure, name) for figure in figures)
