"""What `make run` shows, and its workload."""

import asyncio
import io
import re
from dataclasses import replace
from itertools import islice

import pytest
from rich.console import Console, ConsoleDimensions

from vgpu.domain import names
from vgpu.domain.grants import assignment
from vgpu.domain.grants.assignment import Assignment, Grant
from vgpu.domain.identifiers import ContainerName
from vgpu.domain.json_types import JsonObject
from vgpu.simulator import display, nodes, tables, view
from vgpu.simulator.api import resources
from vgpu.simulator.api.cluster import InMemoryCluster
from vgpu.simulator.api.resources import PODS, Target
from vgpu.simulator.view import CardLine, PodLine, View
from vgpu.simulator.workload import FIRST_PODS, KEPT_BATCH_PODS, RejectedPod, SimulatedWorkload, manifests

FLEET = nodes.fleet(1, 2, [80 * 1024], 256)
FIRST, SECOND = (card.uuid for card in FLEET[0].cards)


async def put(cluster: InMemoryCluster, name: str, limits: dict[str, int], *grants: Grant) -> None:
    spec = {"containers": [{"name": "main", "resources": {"limits": limits}}]}
    await cluster.create(Target(PODS, "default"), {"metadata": {"name": name}, "spec": spec})
    if grants:
        annotations = {names.ASSIGNMENT: assignment.encode(Assignment({ContainerName("main"): grants}))}
        binding = {"metadata": {"annotations": annotations}, "target": {"name": "node-1"}}
        await cluster.bind(Target(PODS, "default", name), binding)


async def test_the_view_has_cards_tenants_and_the_reasons_of_pending_pods(cluster: InMemoryCluster) -> None:
    await put(cluster, "share", {names.GPU_MEM: 8192, names.GPU_CORES: 30}, Grant(FIRST, 8192, 30))
    await put(cluster, "whole", {names.GPU: 1}, Grant(SECOND, 81920, whole=True))
    await put(cluster, "waits", {names.GPU_MEM: 12288, names.GPU: 2})
    event = {"involvedObject": {"uid": cluster.get(Target(PODS, "default", "waits"))["metadata"]["uid"]}}
    message = {"source": {"component": "vgpu-extender"}, "message": "needs 6 GiB on 2 cards; ..."}
    await cluster.create(Target(resources.EVENTS, "default"), {"metadata": {"name": "e"}, **event, **message})
    denied = RejectedPod("typo", 'admission webhook "v" denied the request: 16Gi is no number')
    result = view.view_of(cluster.store, FLEET, [denied])
    assert result.cards == (
        CardLine("node-1", 0, 81920, 8192, 30, is_whole=False, tenants=("share",)),
        CardLine("node-1", 1, 81920, 81920, 100, is_whole=True, tenants=("whole",)),
    )
    assert result.pods == (
        PodLine("share", "8 GiB, 30 %", "Pending", "node-1 card 0", ""),
        PodLine("waits", "2 x 6 GiB", "Pending", "", "needs 6 GiB on 2 cards; ..."),
        PodLine("whole", "1 whole card", "Pending", "node-1 card 1", ""),
        PodLine("typo", "", "Refused", "", "16Gi is no number"),
    )


HEADS = ("dashboard http://127.0.0.1:9871/", "Kubernetes http://127.0.0.1:45403")
WHY = "needs 195.25 GiB on 1 card; node-1: card 0 CardTooSmall (80 GiB and 100 % of compute free), card 1 CardTooSmall"


def full() -> View:
    """What `make run` shows after a while: twelve cards, and more pods than eighty by twenty-four have room for."""
    cards = [
        CardLine(f"node-{n}", k, 81920, 8192, 30, False, ("share", f"p{n}{k}")) for n in (1, 2, 3) for k in range(4)
    ]
    pods = [PodLine(f"notebook-{n}", "16 GiB, 25 %", "Running", f"node-{n % 3 + 1} card 1", "") for n in range(30)]
    waits = PodLine("too-large", "195.25 GiB", "Pending", "", WHY)
    return View(tuple(cards), (waits, *pods, PodLine("typo", "", "Refused", "", "[red]16Gi is no number")))


def drawn(*sizes: tuple[int, int]) -> list[list[str]]:
    """The lines of each frame on a terminal that changes its size (columns, lines) between them."""
    console = Console(file=io.StringIO(), force_terminal=True, color_system=None, legacy_windows=False)
    console.size = ConsoleDimensions(*sizes[0])
    live = display.LiveScreen(console)
    live.start(HEADS, "")
    frames = []
    for size in sizes:
        console.size = ConsoleDimensions(*size)
        assert isinstance(console.file, io.StringIO)
        console.file.seek(0)
        console.file.truncate()
        live.show(full())
        home, _, frame = console.file.getvalue().partition("\x1b[H")
        assert home == ""
        frames.append(re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", frame).split("\n"))
    live.stop()  # gives stdout back
    return frames


@pytest.mark.parametrize(("width", "height"), [(80, 24), (80, 60), (150, 40)])
def test_addresses_cards_pods_and_why_they_wait_are_in_view(width: int, height: int) -> None:
    (lines,) = drawn((width, height))
    text = " ".join(" ".join(lines).split())
    assert (len(lines), max(map(len, lines)) <= width) == (height, True)
    for wanted in (
        *HEADS,
        "node-1",
        "node-3",
        "32 GiB of 320 GiB" if height == 24 else "8 GiB of 80 GiB",
        "notebook-29",
    ):
        assert wanted in text
    why = [line[line.index(" ") :] for line in lines if "Pending" in line or line.startswith(" " * 20)]
    assert "CardTooSmall (80 GiB and" in " ".join(" ".join(why).split())
    assert "[red]16Gi is no number" in text


def test_a_change_of_the_terminals_size_duplicates_nothing() -> None:
    """Each frame fills the alternate screen from its first line on."""
    for (width, height), lines in zip(
        [(150, 40), (80, 24), (120, 30)], drawn((150, 40), (80, 24), (120, 30)), strict=True
    ):
        assert (len(lines), max(map(len, lines)) <= width) == (height, True)
        assert [sum(head in line for line in lines) for head in HEADS] == [1, 1]
        assert sum(line.startswith("too-large") for line in lines) == 1


CARD = CardLine("node-1", 0, 81920, 8192, 30, is_whole=False, tenants=("share",))
POD = PodLine("share", "8 GiB, 30 %", "Running", "node-1 card 0", "")


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


async def test_refused_pods_of_the_workload_are_recorded(cluster: InMemoryCluster) -> None:
    pauses = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    workload = SimulatedWorkload(cluster, sleep)
    await put(cluster, FIRST_PODS[1].name, {})
    await workload.run(3)
    assert [pod.name for pod in workload.refused] == [FIRST_PODS[1].name]
    assert "already exists" in workload.refused[0].why
    assert len(cluster.store.objects(PODS.name)) == 3
    assert pauses == [1, 1, 1]


def test_every_pod_of_the_workload_has_a_unique_name() -> None:
    found: list[JsonObject] = list(islice(manifests(), 40))
    assert len({manifest["metadata"]["name"] for manifest in found}) == 40


async def test_batch_pods_come_without_end_and_old_ones_go(cluster: InMemoryCluster) -> None:
    pauses = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 100:
            raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        await SimulatedWorkload(cluster, sleep).run(len(FIRST_PODS), goes_on=True)
    left = {pod["metadata"]["name"] for pod in cluster.store.objects(PODS.name)}
    assert {pod.name for pod in FIRST_PODS} < left
    assert len(left) == len(FIRST_PODS) + KEPT_BATCH_PODS
    assert {"batch-91", "sweep-77"} < left


def test_names_are_links_into_the_admin_rest() -> None:
    console = Console(width=200, height=30, force_terminal=True)
    with console.capture() as captured:
        cards = (CardLine("node-1", 0, 1024, 256, 30, is_whole=False, tenants=("a",)),)
        console.print(tables.cards_table(cards, "http://127.0.0.1:9871"))
        console.print(tables.pods_table((PodLine("p", "", "Running", "", ""),), 80, "http://127.0.0.1:9871"))
    links = re.findall(r"\x1b\]8;id=\d+;([^\x1b]+)\x1b", captured.get())
    assert links == ["http://127.0.0.1:9871/api/v1/gpus?node=node-1", "http://127.0.0.1:9871/api/v1/pods?name=p"]
