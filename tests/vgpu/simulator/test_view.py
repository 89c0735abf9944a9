"""What `make run` shows, and its workload."""

import re
from dataclasses import replace

import pytest
from rich.console import Console

from vgpu import assignment, names
from vgpu.assignment import Assignment, Grant
from vgpu.simulator import display, nodes, view
from vgpu.simulator.api import resources
from vgpu.simulator.api.cluster import Cluster
from vgpu.simulator.api.resources import PODS, Json, Target
from vgpu.simulator.view import CardRow, PodRow, View
from vgpu.simulator.workload import FIRST_PODS, RejectedPod, Workload, manifests

FLEET = nodes.fleet(1, 2, 80 * 1024, 256)
FIRST, SECOND = (card.uuid for card in FLEET[0].cards)


async def put(cluster: Cluster, name: str, limits: dict[str, int], *grants: Grant) -> None:
    spec = {"containers": [{"name": "main", "resources": {"limits": limits}}]}
    await cluster.create(Target(PODS, "default"), {"metadata": {"name": name}, "spec": spec})
    if grants:
        annotations = {names.ASSIGNMENT: assignment.encode(Assignment({"main": grants}))}
        binding = {"metadata": {"annotations": annotations}, "target": {"name": "node-1"}}
        await cluster.bind(Target(PODS, "default", name), binding)


async def test_the_view_has_cards_tenants_and_the_reasons_of_pending_pods(cluster: Cluster) -> None:
    await put(cluster, "share", {names.GPU_MEM: 8192, names.GPU_CORES: 30}, Grant(FIRST, 8192, 30))
    await put(cluster, "whole", {names.GPU: 1}, Grant(SECOND, 81920, whole=True))
    await put(cluster, "waits", {names.GPU_MEM: 12288, names.GPU: 2})
    event = {"involvedObject": {"uid": cluster.get(Target(PODS, "default", "waits"))["metadata"]["uid"]}}
    message = {"source": {"component": "vgpu-extender"}, "message": "needs 6 GiB on 2 cards; ..."}
    await cluster.create(Target(resources.EVENTS, "default"), {"metadata": {"name": "e"}, **event, **message})
    denied = RejectedPod("typo", 'admission webhook "v" denied the request: 16Gi is no number')
    result = view.view_of(cluster.store, FLEET, [denied])
    assert result.cards == (
        CardRow("node-1", 0, 81920, 8192, 30, is_whole=False, tenants=("share",)),
        CardRow("node-1", 1, 81920, 81920, 100, is_whole=True, tenants=("whole",)),
    )
    assert result.pods == (
        PodRow("share", "8 GiB, 30 %", "Pending", "node-1 card 0", ""),
        PodRow("waits", "2 x 6 GiB", "Pending", "", "needs 6 GiB on 2 cards; ..."),
        PodRow("whole", "1 whole card", "Pending", "node-1 card 1", ""),
        PodRow("typo", "", "Refused", "", "16Gi is no number"),
    )


def rendered(content: View, width: int) -> str:
    console = Console(width=width, height=30, force_terminal=True, color_system=None, record=True)
    with console.capture() as shown:
        console.print(display.cards_table(content.cards), display.pods_table(content.pods))
    return shown.get()


CARD = CardRow("node-1", 0, 81920, 8192, 30, is_whole=False, tenants=("share",))
POD = PodRow("share", "8 GiB, 30 %", "Running", "node-1 card 0", "")


@pytest.mark.parametrize("width", [80, 150])
def test_tables_fit_their_width_and_keep_the_important_columns(width: int) -> None:
    note = "spec.containers[main].resources: " + "long " * 40
    shown = rendered(View((CARD,), (POD, PodRow("typo", "", "Refused", "", note))), width)
    for word in ("8 GiB of 80 GiB", "30 %", "share", "Running", "node-1 card 0", "spec.containers["):
        assert word in shown
    assert max(map(len, shown.splitlines())) <= width


def test_only_changes_are_printed() -> None:
    empty = replace(CARD, used_mib=0, cores=0, tenants=())
    first, second = View((empty,), ()), View((CARD,), (POD,))
    assert list(display.changes(View((), ()), first)) == []
    assert list(display.changes(first, second)) == [
        "pod share: Running on node-1 card 0 (8 GiB, 30 %)",
        "card node-1/0: 8 GiB of 80 GiB, 30 %: share",
    ]
    assert list(display.changes(second, second)) == []
    assert list(display.changes(second, first)) == ["card node-1/0: 0 MiB of 80 GiB, 0 %: nobody", "pod share: gone"]


async def test_refused_pods_of_the_workload_are_recorded(cluster: Cluster) -> None:
    pauses = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    workload = Workload(cluster, sleep)
    await put(cluster, FIRST_PODS[1].name, {})
    await workload.run(3)
    assert [each.name for each in workload.refused] == [FIRST_PODS[1].name]
    assert "already exists" in workload.refused[0].why
    assert len(cluster.store.objects(PODS.name)) == 3
    assert pauses == [1, 1, 1]


def test_every_pod_of_the_workload_has_a_unique_name() -> None:
    found: list[Json] = list(manifests(40))
    assert len({manifest["metadata"]["name"] for manifest in found}) == 40
    assert list(manifests(2)) == found[:2]


def test_names_are_links_into_the_admin_rest() -> None:
    console = Console(width=200, height=30, force_terminal=True)
    with console.capture() as captured:
        cards = (CardRow("node-1", 0, 1024, 256, 30, is_whole=False, tenants=("a",)),)
        console.print(display.cards_table(cards, "http://127.0.0.1:9871"))
        console.print(display.pods_table((PodRow("p", "", "Running", "", ""),), "http://127.0.0.1:9871"))
    links = re.findall(r"\x1b\]8;id=\d+;([^\x1b]+)\x1b", captured.get())
    assert links == ["http://127.0.0.1:9871/api/v1/gpus?node=node-1", "http://127.0.0.1:9871/api/v1/pods?name=p"]
