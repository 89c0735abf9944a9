"""Restarts of the kubelet: no pod fails, no slice is given twice, and allocatable slices come back at once."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

import pytest

from cluster import nodes, progress, wait
from cluster.cluster import GpuCluster
from tests.e2e import audit, checkpoint
from tests.e2e.churn import churn, offered_slices, restart_counts, until_slices_are_offered
from tests.e2e.pod_namespace import PodNamespace, pod
from vgpu.domain import names

pytestmark = pytest.mark.e2e


@contextmanager
def sampled_slices(cluster: GpuCluster, node: nodes.ClusterNode) -> Iterator[list[tuple[float, int]]]:
    """Sample the node's allocatable slices until the block ends: pairs of seconds since 1970 and slices."""
    samples: list[tuple[float, int]] = []
    ended = threading.Event()

    def run() -> None:
        while not ended.wait(0.02):
            samples.append((time.time(), offered_slices(cluster, node)))

    worker = threading.Thread(target=run)
    worker.start()
    try:
        yield samples
    finally:
        ended.set()
        worker.join()


@pytest.fixture
def usual_status_period(namespace: PodNamespace) -> Iterator[None]:
    yield
    namespace.cluster.nodes[0].restart_kubelet()


@pytest.mark.usefixtures("usual_status_period")
@pytest.mark.parametrize("status_period", [nodes.STATUS_PERIOD, "10s"])
def test_a_restarted_kubelet_fails_no_pod_and_offers_its_slices_within_a_second(
    namespace: PodNamespace, status_period: str
) -> None:
    node = namespace.cluster.nodes[0]
    uuid = node.cards[0].uuid
    manifest = pod("stays", annotations={names.USE_GPU_UUID: uuid}, gpu_mem=4096)
    namespace.create(manifest)
    namespace.running("stays")
    before, log_size = offered_slices(namespace.cluster, node), node.kubelet.log.stat().st_size
    with sampled_slices(namespace.cluster, node) as samples:
        node.restart_kubelet(status_period)
        registered = namespace.until(
            lambda: registered_after(node.kubelet.log, log_size), "the plugin has registered", 20
        )
        namespace.until(lambda: offered_slices(namespace.cluster, node) == before, "allocatable is back", 20)
        time.sleep(2)  # a later drop of allocatable would be sampled too
    back = back_after(samples, served_at(node.kubelet.log, log_size) or 0.0, before)
    progress.say(
        f"kubelet (status each {status_period}) restarted; after its socket was served: slices registered in"
        f" {registered * 1000:.0f} ms, allocatable back in the API in {back * 1000:.0f} ms"
    )
    assert registered < wait.allowed(1)
    assert back < wait.allowed(1)
    namespace.create(pod("after", annotations={names.USE_GPU_UUID: uuid}, gpu_mem=4096))
    namespace.running("stays", "after")
    (line,) = namespace.probe("stays", "info")
    assert line["cuda"][0]["total"] == 4096 << 20
    assert restart_counts(namespace) == {"stays": 0, "after": 0}


def test_kubelet_restarts_during_churn_fail_no_pod_and_give_no_slice_twice(namespace: PodNamespace) -> None:
    cluster, since = namespace.cluster, namespace.cluster.control.audit.stat().st_size
    with churn(namespace) as created:
        for node in cluster.nodes:
            namespace.until(lambda: len(created) > 5, "pods are created")
            node.restart_kubelet()
            until_slices_are_offered(namespace, node)
        count = len(created)
        namespace.until(lambda: len(created) > count + 12, "more pods are created")
        for node in cluster.nodes:
            checkpoint.assert_no_slice_twice(node)
    assert not audit.failed(cluster.control.audit, since, namespace.name)


def back_after(samples: list[tuple[float, int]], served: float, full: int) -> float:
    """Seconds from serving the socket until the last sample below `full`; 0 without any such sample."""
    return max((at - served for at, slices in samples if slices != full), default=0.0)


def served_at(log: Path, since: int) -> float | None:
    """When the kubelet last began to serve its registration socket, in seconds since 1970, from its log."""
    return _logged(log, since, "Starting device plugin registration server")


def registered_after(log: Path, since: int) -> float | None:
    """Seconds from serving the registration socket to the registration of slices, from the kubelet's log."""
    served = served_at(log, since)
    requested = _logged(log, since, "Got registration request", names.SLICE)
    return None if served is None or requested is None else requested - served


def _logged(log: Path, since: int, *words: str) -> float | None:
    """When the kubelet last logged a line with all of these words, in seconds since 1970."""
    lines = log.read_bytes()[since:].decode(errors="replace").splitlines()
    stamps = [line.split()[:2] for line in lines if all(word in line for word in words)]
    if not stamps:
        return None
    day, clock = stamps[-1]
    year = time.localtime().tm_year
    return datetime.strptime(f"{year}{day[1:]} {clock}", "%Y%m%d %H:%M:%S.%f").timestamp()  # noqa: DTZ007 - klog writes local time
