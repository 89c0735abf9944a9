"""What simulated nodes report of their cards: as much as their containers use."""

from datetime import UTC, datetime, timedelta
from typing import Any

from tests.strategies import container
from tests.vgpu.node import builders
from vgpu.domain.cards.device import Node
from vgpu.domain.identifiers import NodeName
from vgpu.simulator.measured import NodeMeter

START = datetime(2026, 11, 28, 18, 59, 0, tzinfo=UTC)


def node() -> Node:
    return Node(NodeName("n1"), builders.SLICE_MIB, (builders.gpu(0, 81_920).card, builders.gpu(1, 81_920).card))


def running(name: str, started: datetime) -> dict[str, Any]:
    pod = builders.manifest(name, container(gpu_mem=1024, gpu_cores=50))
    return pod | {"status": {"phase": "Running", "startTime": started.isoformat()}}


def test_a_card_is_busy_while_its_containers_use_it() -> None:
    meter = NodeMeter(node())
    pods = [running("a", START)]
    assert meter.status([], START)["cardUse"] == []
    first = meter.status(pods, START + timedelta(seconds=30))
    (used,) = [use for use in first["usage"] if use["gpu"] == builders.uuid(0)]
    busy, idle = first["cardUse"]
    assert (busy["busyMs"], idle["busyMs"]) == (used["gpuMs"], 0)
    assert busy["usedMiB"] == used["usedMiB"]
    later = meter.status([], START + timedelta(seconds=50))["cardUse"][0]
    assert (later["busyMs"], later["usedMiB"]) == (busy["busyMs"], 0)


def test_the_count_begins_anew_each_hour() -> None:
    meter = NodeMeter(node())
    pods = [running("a", START)]
    meter.status(pods, START)
    for seconds in (30, 70, 80):
        found = meter.status(pods, START + timedelta(seconds=seconds))["cardUse"][0]
        assert 0 < found["busyMs"] < found["untilMs"] - found["fromMs"]
    assert found["fromMs"] == int((START + timedelta(seconds=60)).timestamp() * 1000)
