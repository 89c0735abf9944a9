"""Short pods that come and go while a test stops parts of the cluster, and what such a test reads of the cluster."""

import itertools
import random
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Unpack

from cluster import nodes
from cluster.cluster import GpuCluster
from tests.e2e.pod_namespace import Document, PodNamespace, Share, container, pod
from vgpu.domain import names, quantity

PAUSE = {"image": "docker.io/local/pause:1", "command": ["/pause"]}


def small(name: str, **share: Unpack[Share]) -> Document:
    """A pod that holds its share and does nothing; it ends at once on SIGTERM."""
    return pod(name, container(**share) | PAUSE)


def offered_slices(cluster: GpuCluster, node: nodes.ClusterNode) -> int:
    status = cluster.api.get(f"/api/v1/nodes/{node.name}")["status"]
    return quantity.whole_number(status["allocatable"].get(names.SLICE, "0")) or 0


def until_slices_are_offered(namespace: PodNamespace, node: nodes.ClusterNode) -> None:
    namespace.until(lambda: offered_slices(namespace.cluster, node) > 0, f"{node.name} has allocatable slices", 30)


def has_event(namespace: PodNamespace, name: str, *words: str) -> bool:
    """Whether the message of an event of a pod contains one of these words."""
    return any(word in event["message"] for event in namespace.events(name) for word in words)


def restart_counts(namespace: PodNamespace) -> dict[str, int]:
    return {
        pod["metadata"]["name"]: sum(status["restartCount"] for status in pod["status"].get("containerStatuses", []))
        for pod in namespace.all()
    }


def create_slowly(namespace: PodNamespace, wanted: Iterable[str], chance: random.Random, pause_s: float) -> None:
    """Create pods that end after 1 to 5 s, with a pause after each."""
    for name in wanted:
        share: Share = {"gpu_mem": 1024 * chance.randint(2, 10), "gpu_cores": chance.randint(1, 12)}
        manifest = pod(name, container(command=("sleep", str(chance.randint(1, 5))), **share))
        manifest["spec"]["restartPolicy"] = "Never"
        namespace.create(manifest)
        time.sleep(pause_s)


def pending(namespace: PodNamespace) -> list[str]:
    return [name for name, phase in namespace.phases().items() if phase == "Pending"]


@contextmanager
def churn(namespace: PodNamespace) -> Iterator[list[str]]:
    """Create and delete short pods on every node until the block ends; yields the names of the pods created so far."""
    created: list[str] = []
    ended = threading.Event()

    def run() -> None:
        for n in itertools.count():
            if ended.wait(0.2):
                return
            name = f"p{n}"
            manifest = small(name, gpu_mem=1024 * random.randint(1, 8), gpu_cores=random.randint(1, 30))
            manifest["metadata"]["annotations"] = {names.NODE_POLICY: "spread"}
            namespace.create(manifest)
            created.append(name)
            if n >= 12:
                namespace.cluster.api.delete(f"{namespace.pods_path}/p{n - 12}")

    worker = threading.Thread(target=run)
    worker.start()
    try:
        yield created
    finally:
        ended.set()
        worker.join()
