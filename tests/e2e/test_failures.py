"""Parts that go away and come back: rows 9 to 12."""

import collections
import itertools
import json
import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Unpack

import pytest

from cluster import nodes, parts, progress
from cluster.cluster import Cluster
from tests.e2e import audit
from tests.e2e.pod_namespace import Document, Share, Space, container, pod
from vgpu import names, quantity

pytestmark = pytest.mark.e2e

WINDOW_S = 3.5  # the plugin's Lease lasts 3 s; the rest is the watch
PAUSE = {"image": "docker.io/local/pause:1", "command": ["/pause"]}


def small(name: str, **share: Unpack[Share]) -> Document:
    """A pod that only holds its share, and ends as soon as it is told."""
    return pod(name, container(**share) | PAUSE)


def offered(cluster: Cluster, node: nodes.Node) -> int:
    status = cluster.api.get(f"/api/v1/nodes/{node.name}")["status"]
    return quantity.whole_number(status["allocatable"].get(names.SLICE, "0")) or 0


def until_slices_are_offered(space: Space, node: nodes.Node) -> None:
    space.until(lambda: offered(space.cluster, node) > 0, f"{node.name} has allocatable slices", 30)


def told(space: Space, name: str, *words: str) -> bool:
    """Whether an event of a pod says one of these."""
    return any(word in event["message"] for event in space.events(name) for word in words)


def restarts(space: Space) -> dict[str, int]:
    return {
        each["metadata"]["name"]: sum(status["restartCount"] for status in each["status"].get("containerStatuses", []))
        for each in space.all()
    }


@contextmanager
def stopped(part: parts.Part) -> Iterator[None]:
    part.stop()
    try:
        yield
    finally:
        part.start()


def test_9_while_the_webhook_is_away_gpu_pods_wait_and_others_start(space: Space) -> None:
    with stopped(space.cluster.webhook):
        space.create(small("waits", gpu_mem=1024))
        space.create(pod("plain", container() | PAUSE))
        space.running("plain")
        space.until(lambda: told(space, "waits", "Insufficient vgpu.io/gpu-mem"), "the waiting pod's reason")
        handmade = small("ours", gpu_mem=1024)
        handmade["spec"]["schedulerName"] = names.SCHEDULER
        space.create(handmade)
        space.until(lambda: told(space, "ours", "NotAdmitted"), "NotAdmitted")
        assert {space.get(name)["spec"].get("nodeName") for name in ("waits", "ours")} == {None}
    space.create(small("runs", gpu_mem=1024))
    space.running("runs")
    assert space.phases() == {"waits": "Pending", "ours": "Pending", "plain": "Running", "runs": "Running"}


@contextmanager
def churn(space: Space) -> Iterator[list[str]]:
    """Short pods come and go on every node until the block ends; yields the names so far."""
    made: list[str] = []
    ended = threading.Event()

    def run() -> None:
        for n in itertools.count():
            if ended.wait(0.2):
                return
            name = f"p{n}"
            manifest = small(name, gpu_mem=1024 * random.randint(1, 8), gpu_cores=random.randint(1, 30))
            manifest["metadata"]["annotations"] = {names.NODE_POLICY: "spread"}
            space.create(manifest)
            made.append(name)
            if n >= 12:
                space.cluster.api.delete(f"{space.pods_path}/p{n - 12}")

    worker = threading.Thread(target=run)
    worker.start()
    try:
        yield made
    finally:
        ended.set()
        worker.join()


@contextmanager
def offers(cluster: Cluster, node: nodes.Node) -> Iterator[list[tuple[float, int]]]:
    """What the API says the node offers, each time with the seconds since 1970, until the block ends."""
    seen: list[tuple[float, int]] = []
    ended = threading.Event()

    def run() -> None:
        while not ended.wait(0.02):
            seen.append((time.time(), offered(cluster, node)))

    worker = threading.Thread(target=run)
    worker.start()
    try:
        yield seen
    finally:
        ended.set()
        worker.join()


@pytest.fixture
def usual_period(space: Space) -> Iterator[None]:
    yield
    space.cluster.nodes[0].restart_kubelet()


@pytest.mark.usefixtures("usual_period")
@pytest.mark.parametrize("status_period", [nodes.STATUS_PERIOD, "10s"])
def test_10_kubelet_restarts_fail_no_pod_and_the_slices_are_back_at_once(space: Space, status_period: str) -> None:
    node = space.cluster.nodes[0]
    uuid = node.cards[0].uuid
    manifest = pod("stays", annotations={names.USE_GPU_UUID: uuid}, gpu_mem=4096)
    space.create(manifest)
    space.running("stays")
    before, said = offered(space.cluster, node), node.kubelet.log.stat().st_size
    with offers(space.cluster, node) as seen:
        node.restart_kubelet(status_period)
        registered = space.until(lambda: registered_after(node.kubelet.log, said), "the plugin has registered", 20)
        space.until(lambda: offered(space.cluster, node) == before, "allocatable is back", 20)
        time.sleep(2)  # and stays
    back = back_after(seen, served_at(node.kubelet.log, said) or 0.0, before)
    progress.say(
        f"kubelet (status each {status_period}) restarted; after its socket was served: slices registered in"
        f" {registered * 1000:.0f} ms, allocatable back in the API in {back * 1000:.0f} ms"
    )
    assert registered < 1
    assert back < 1
    space.create(pod("after", annotations={names.USE_GPU_UUID: uuid}, gpu_mem=4096))
    space.running("stays", "after")
    (line,) = space.probe("stays", "info")
    assert line["cuda"][0]["total"] == 4096 << 20
    assert restarts(space) == {"stays": 0, "after": 0}


def back_after(seen: list[tuple[float, int]], served: float, full: int) -> float:
    """Seconds from the serving of the socket until the API offers all for good; 0 where it never said less."""
    return max((at - served for at, slices in seen if slices != full), default=0.0)


def served_at(log: Path, since: int) -> float | None:
    """When the kubelet last began to serve its registration socket, in seconds since 1970, by its own log."""
    return _logged(log, since, "Starting device plugin registration server")


def registered_after(log: Path, since: int) -> float | None:
    """Seconds from the kubelet's serving its registration socket to the registration of slices, by its own log."""
    served = served_at(log, since)
    asked = _logged(log, since, "Got registration request", names.SLICE)
    return None if served is None or asked is None else asked - served


def _logged(log: Path, since: int, *words: str) -> float | None:
    """When the kubelet last wrote a line with all of these words."""
    lines = log.read_bytes()[since:].decode(errors="replace").splitlines()
    stamps = [line.split()[:2] for line in lines if all(word in line for word in words)]
    if not stamps:
        return None
    day, clock = stamps[-1]
    year = time.localtime().tm_year
    return datetime.strptime(f"{year}{day[1:]} {clock}", "%Y%m%d %H:%M:%S.%f").timestamp()  # noqa: DTZ007 - klog's


def test_10_kubelet_restarts_in_a_churn_fail_no_pod_and_give_no_slice_twice(space: Space) -> None:
    cluster, since = space.cluster, space.cluster.control.audit.stat().st_size
    with churn(space) as made:
        for node in cluster.nodes:
            space.until(lambda: len(made) > 5, "the churn is on")
            node.restart_kubelet()
            until_slices_are_offered(space, node)
        seen = len(made)
        space.until(lambda: len(made) > seen + 12, "the churn goes on")
        for node in cluster.nodes:
            assert_no_slice_twice(node)
    assert not audit.failed(cluster.control.audit, since, space.name)


def test_10_a_killed_plugin_fails_only_pods_bound_before_the_node_was_known_away(space: Space) -> None:
    cluster, since = space.cluster, space.cluster.control.audit.stat().st_size
    killed: list[float] = []
    with churn(space) as made:
        for node, plugin in zip(cluster.nodes, cluster.plugins, strict=True):
            space.until(lambda: len(made) > 5, "the churn is on")
            killed.append(time.time())
            plugin.kill()
            time.sleep(WINDOW_S + 2)
            plugin.start()
            node.restart_kubelet()
            until_slices_are_offered(space, node)
        seen = len(made)
        space.until(lambda: len(made) > seen + 12, "the churn goes on")
        for node in cluster.nodes:
            assert_no_slice_twice(node)
    bound = audit.bound_at(cluster.control.audit, since, space.name)
    failed = audit.failed(cluster.control.audit, since, space.name)
    late = {name: min(bound[name] - at for at in killed if bound[name] > at - 1) for name in failed}
    progress.say(f"plugins killed in a churn: {len(late)} of {len(bound)} pods failed; bound after the kill by {late}")
    assert all(seconds <= WINDOW_S for seconds in late.values()), {name: (late[name], failed[name]) for name in late}


def assert_no_slice_twice(node: nodes.Node) -> None:
    """By the kubelet's own checkpoint, which only a test may read."""
    checkpoint = json.loads((node.work / "lib/kubelet/device-plugins/kubelet_internal_checkpoint").read_text())
    held: collections.Counter[str] = collections.Counter()
    pods: dict[str, set[str]] = collections.defaultdict(set)
    for entry in checkpoint["Data"]["PodDeviceEntries"] or []:
        for ids in entry["DeviceIDs"].values():
            for each in ids:
                pods[each].add(entry["PodUID"])
                held[each] += 1
    assert not {each: uids for each, uids in pods.items() if len(uids) > 1}


def test_10_while_the_plugin_is_away_its_node_gets_no_pod(space: Space) -> None:
    node, plugin = space.cluster.nodes[0], space.cluster.plugins[0]
    here = {names.USE_GPU_UUID: node.cards[0].uuid}
    space.create(pod("stays", annotations=here, gpu_mem=4096))
    space.running("stays")
    with stopped(plugin):
        space.until(lambda: offered(space.cluster, node) == 0, "the kubelet notices", 20)
        space.create(pod("waits", annotations=here, gpu_mem=4096))
        space.until(lambda: told(space, "waits", "PluginAway"), "the reason")
        time.sleep(5)  # what else could wake the scheduler has passed
        assert space.phases() == {"stays": "Running", "waits": "Pending"}
    space.running("stays", "waits", within_s=20)
    assert restarts(space) == {"stays": 0, "waits": 0}


def test_10_a_second_copy_of_the_plugin_takes_over(space: Space) -> None:
    cluster = space.cluster
    node, plugin = cluster.nodes[0], cluster.plugins[0]
    here = {names.USE_GPU_UUID: node.cards[0].uuid}
    space.create(pod("stays", annotations=here, gpu_mem=4096))
    space.running("stays")
    second = cluster.maker.plugin(node, "second-deviceplugin")
    second.start()
    plugin.stop()  # its streams end under the second one's registration
    try:
        space.until(lambda: offered(cluster, node) > 0, "the second copy's slices", 20)
        space.create(pod("after", annotations=here, gpu_mem=4096))
        space.running("stays", "after")
        assert restarts(space) == {"stays": 0, "after": 0}
    finally:
        second.stop()
        plugin.start()


@pytest.mark.timeout(600)
def test_11_an_extender_killed_ten_times_during_a_churn_loses_and_doubles_nothing(space: Space) -> None:
    cluster, since = space.cluster, space.cluster.control.audit.stat().st_size
    wanted = [f"p{n}" for n in range(200)]
    chance = random.Random(11)
    creator = threading.Thread(target=create_slowly, args=(space, wanted, chance))
    creator.start()
    for _ in range(10):
        time.sleep(chance.uniform(1, 4))
        cluster.extender.kill()
        cluster.extender.start()
    creator.join()
    space.until(lambda: not pending(space), "every pod was placed", 240)
    phases = collections.Counter(space.phases().values())
    assert set(phases) <= {"Running", "Succeeded"}, phases
    assert sum(phases.values()) == 200
    for card, peak in audit.peaks(cluster.control.audit, since, space.name).items():
        assert peak.memory_mib <= 81920, card
        assert peak.cores <= 100, card


def create_slowly(space: Space, wanted: list[str], chance: random.Random) -> None:
    """Half of the pods end by themselves; together they are more than the cards hold at one time."""
    for name in wanted:
        share: Share = {"gpu_mem": 1024 * chance.randint(2, 10), "gpu_cores": chance.randint(1, 12)}
        life = ("sleep", str(chance.randint(1, 5)))
        manifest = pod(name, container(command=life, **share))
        manifest["spec"]["restartPolicy"] = "Never"
        space.create(manifest)
        time.sleep(0.1)


def pending(space: Space) -> list[str]:
    return [name for name, phase in space.phases().items() if phase == "Pending"]


def test_12_a_scheduled_pod_costs_one_write(space: Space) -> None:
    since = space.cluster.control.audit.stat().st_size
    wanted = [f"p{n}" for n in range(10)]
    for name in wanted:
        space.create(small(name, gpu_mem=1024))
    space.running(*wanted)
    assert audit.writes(space.cluster.control.audit, since, "vgpu-extender") == ["create pods/binding"] * 10
