"""The extender's metrics, from its verbs and watches to Prometheus' text."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import httpx
import pytest

from extender import app, metrics
from extender.history import drain_state, folder, lag
from extender.history.drain_state import DrainState
from extender.history.lag import Lag
from extender.history.recording.events import Gap
from extender.history.recording.recorder import SpillRecorder
from extender.history.recording.spill import Spill
from extender.history.reporting.prices import Prices
from extender.metrics import ExtenderParts, VerbMetrics
from extender.state.fields.card_use import ReportedCardUse
from tests.extender.conftest import World
from tests.hostile_pods import tenants
from vgpu.adapters.metrics import Metric, MetricKind, Registry
from vgpu.domain import names
from vgpu.domain.cards.reasons import ONLY_EXPLAINED, Reason
from vgpu.domain.identifiers import NodeName

N1 = NodeName("n1")


def text(world: World) -> str:
    return world.seen.registry.render("text/plain")[0].decode()


async def test_the_verbs_are_counted_and_timed(world: World) -> None:
    pod, large = await world.create_pod(), await world.create_pod(gpu_mem=1_000_000)
    transport = httpx.ASGITransport(app.app(world.verbs, world.watches, lambda: 0.0))
    async with httpx.AsyncClient(transport=transport, base_url="http://extender") as client:
        for obj in (pod, large):
            await client.post("/filter", json={"Pod": obj, "NodeNames": ["n1", "n2"]})
        await client.post("/filter", content=b"{")
    assert await world.bind(pod) == ""
    found = text(world)
    assert 'vgpu_extender_verb_seconds_count{verb="filter"} 2.0' in found
    assert 'vgpu_extender_verb_failures_total{reason="malformed",verb="filter"} 1.0' in found
    assert 'vgpu_extender_unplaced_total{reason="CardTooSmall"} 1.0' in found
    assert 'vgpu_extender_binds_total{result="bound"} 1.0' in found
    assert "vgpu_extender_leader 1.0" in found
    assert 'vgpu_extender_objects{kind="gpunodes"} 3.0' in found
    assert 'vgpu_extender_watch_synced{watch="pods"} 1.0' in found
    assert re.search(r'vgpu_extender_watch_age_seconds\{watch="pods"\} ', found)


async def test_every_metric_of_the_catalogue_is_served_and_there_are_at_most_200_series(world: World) -> None:
    for verb in metrics.VERBS:
        for reason in ("not_ready", "malformed", "too_long", "disconnected"):
            world.verbs.metrics.failed(verb, reason)
    found = text(world)
    assert set(re.findall(r"^# TYPE (\S+)", found, re.MULTILINE)) == {metric.name for metric in metrics.CATALOGUE}
    lines = [line for line in found.split("\n") if line and not line.startswith("#")]
    assert len(lines) + len(set(Reason) - ONLY_EXPLAINED) <= 200


async def test_no_tenant_adds_series_or_texts_by_pods_that_come_and_go(world: World) -> None:
    series = r"^[^#{ ]+(?:\{[^}]*\})?"
    for verb in metrics.VERBS:
        world.verbs.metrics.failed(verb, "malformed")
    await world.filter(await world.create_pod(gpu_mem=1_000_000))
    for number, value in enumerate((*tenants.ESCAPES, *tenants.MARKUP)):
        annotations = {"vgpu.io/use-gpu-model": value, "vgpu.io/gang": f"hostile-{number}", "vgpu.io/gang-size": "2"}
        metadata = {"name": f"hostile-{number}", "annotations": annotations, "labels": {f"hostile-{number}": "hostile"}}
        pod = await world.create_pod(metadata=metadata, gpu_mem=1_000_000)
        await world.filter(pod)
        if number % 2:
            await world.delete_pod(pod)
    found = text(world)
    assert "hostile" not in found
    reasons = {str(reason) for reason in Reason}
    labels = set(re.findall(r'vgpu_extender_unplaced_total\{reason="([^"]*)"\}', found))
    assert labels <= reasons
    assert len(set(re.findall(series, found, re.MULTILINE))) <= 200


def value(world: World, series: str) -> float | None:
    """The value of a series; None where it is not served."""
    found = re.search(rf"^{re.escape(series)} (\S+)$", text(world), re.MULTILINE)
    return float(found[1]) if found else None


async def test_waiting_pods_are_counted_by_the_first_reason_of_the_last_decision(world: World) -> None:
    pending = 'vgpu_extender_pending_pods{reason="%s"}'
    large, fits = await world.create_pod(gpu_mem=1_000_000), await world.create_pod()
    await world.create_pod(admitted=False)
    assert value(world, pending % "NotTried") == 2
    await world.filter(large)
    assert await world.bind(fits) == ""
    await world.until_bound_is_watched(fits)
    assert [value(world, pending % reason) for reason in ("CardTooSmall", "NotAdmitted", "NotTried")] == [1, 1, 0]
    await world.delete_pod(large)
    assert value(world, pending % "CardTooSmall") == 0


async def test_a_replica_that_does_not_bind_counts_no_waiting_pods(world: World) -> None:
    world.leader.refusal_text = "NotLeader: another replica binds"
    assert "vgpu_extender_pending_pods{" not in text(world)


async def test_closed_cards_and_nodes_that_cannot_be_used_are_named(world: World) -> None:
    assert "vgpu_extender_closed_cards{" not in text(world)
    uuid = world.cluster.objects.gpunodes[N1].node.cards[0].uuid
    await world.client.patch(f"{names.GPUNODES_PATH}/n1", {"spec": {"cards": [{"uuid": uuid, "cordoned": True}]}})
    await world.until(lambda: world.cluster.objects.gpunodes[N1].node.cards[0].cordoned)
    closed = rf'closed_cards\{{gpu_index="0",gpu_uuid="{uuid}",.*node="n1",reason="CardCordoned"\}} 1'
    assert re.search(closed, text(world))
    assert "vgpu_extender_blocked_nodes{" not in text(world)
    world.cluster.leases.remove(names.node_lease(NodeName("n2")))
    assert value(world, 'vgpu_extender_blocked_nodes{node="n2",reason="PluginAway"}') == 1


async def test_a_report_of_use_that_is_late_has_an_age(world: World) -> None:
    (late,) = [declared for declared in metrics.READ if declared.metric.name == "vgpu_extender_late_report_seconds"]
    known = world.cluster.objects.gpunodes
    uuid = known[N1].node.cards[0].uuid
    known[N1] = replace(known[N1], card_use=(ReportedCardUse(uuid, 0, 60_000, 0),))
    now_ms = [60_000 + metrics.LATE_MS]
    parts = cast("ExtenderParts", SimpleNamespace(cluster=world.cluster, now_ms=lambda: now_ms[0]))
    assert late.read(parts) == []
    now_ms[0] = 300_000
    assert late.read(parts) == [(("n1",), 240.0)]
    world.cluster.leases.remove(names.node_lease(N1))
    assert late.read(parts) == []


def test_prices_are_served_by_model() -> None:
    parts = cast("ExtenderParts", SimpleNamespace(prices=Prices("EUR", {"NVIDIA L4": 0.71, "default": 1.0})))
    (read,) = [declared.read for declared in metrics.READ if declared.metric.name == "vgpu_extender_card_hour_price"]
    assert read(parts) == [(("NVIDIA L4", "EUR"), 0.71), (("default", "EUR"), 1.0)]


@pytest.mark.parametrize(("state", "served"), [(None, []), (True, [((), True)]), (False, [((), False)])])
def test_the_admins_process_has_a_value_where_it_is_on(state: bool | None, served: list[object]) -> None:
    parts = cast("ExtenderParts", SimpleNamespace(is_admin_up=lambda: state))
    (read,) = [declared.read for declared in metrics.READ if declared.metric.name == "vgpu_extender_admin_up"]
    assert read(parts) == served


def history_values(found: Callable[[], Lag | None]) -> dict[str, dict[tuple[str, ...], float]]:
    """The metrics of the history, which are read of nothing else."""
    parts = cast("ExtenderParts", SimpleNamespace(history=found))
    read = {declared.metric.name: declared.read for declared in metrics.READ}
    return {name: dict(values(parts)) for name, values in read.items() if "_history_" in name}


def test_the_lag_of_the_history(tmp_path: Path) -> None:
    """Two records are in the spill, and no drain has stored them."""
    drain_state.write(folder.state_file(tmp_path), DrainState(1, 3, 4, "no such database"))
    recorder = SpillRecorder(Spill(folder.spill(tmp_path), max_bytes=1 << 20), "r", lambda: 0)
    recorder.start()
    for number in range(2):
        recorder.record(Gap("r", number, number, 1))
    assert recorder.stop(10.0)
    served = history_values(lag.reader(recorder, tmp_path, lambda: 0))
    assert served["vgpu_extender_history_waiting_records"] == {("memory",): 0, ("disk",): 2}
    assert served["vgpu_extender_history_lost_records_total"] == {("dropped",): 0, ("unreadable",): 3, ("refused",): 4}
    assert served["vgpu_extender_history_up"] == {(): 0}
    assert lag.reader(recorder, None, lambda: 0)() is None
    assert set(map(len, history_values(lambda: None).values())) == {0}


@pytest.mark.parametrize("metric", metrics.CATALOGUE, ids=lambda metric: metric.name)
def test_names_follow_the_conventions(metric: Metric) -> None:
    assert (metric.kind is MetricKind.COUNTER) == metric.name.endswith("_total")
    assert metric.name.startswith("vgpu_extender_")


def test_a_refused_bind_is_counted() -> None:
    registry = Registry()
    counted = VerbMetrics(registry)
    counted.bound("NotLeader: x")
    assert 'vgpu_extender_binds_total{result="refused"} 1.0' in registry.render("text/plain")[0].decode()
