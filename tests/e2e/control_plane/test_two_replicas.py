"""Two replicas, each a kube-scheduler with its extender: the extender beside the leading kube-scheduler binds.

Ended processes are started again a second later, as the kubelet starts containers.
"""

import collections
import random
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import pytest

from cluster import progress
from cluster.cluster import GpuCluster
from cluster.parts import ClusterPart
from tests.e2e import audit
from tests.e2e.churn import create_slowly, pending, stopped
from tests.e2e.pod_namespace import PodNamespace, container, pod

pytestmark = pytest.mark.e2e

RESTART_S = 1.0
TAKEN_OVER_S = 120.0  # 34 s on an idle machine
SCHEDULERS = "/apis/coordination.k8s.io/v1/namespaces/vgpu-system/leases/vgpu-scheduler"
FAULTS = ("scheduler killed", "extender killed", "both terminated", "both stopped for 25 s")
EXTENDERS = "/apis/coordination.k8s.io/v1/namespaces/vgpu-system/leases/vgpu-extender"


class Replica(NamedTuple):
    """One pod of the Deployment."""

    host: str
    extender: ClusterPart
    scheduler: ClusterPart

    @property
    def parts(self) -> tuple[ClusterPart, ClusterPart]:
        return self.extender, self.scheduler


def holder(cluster: GpuCluster, lease: str) -> str:
    """The host that holds a Lease."""
    spec = cluster.api.get(lease)["spec"]
    return str(spec.get("holderIdentity") or "").rpartition("_")[0]


@contextmanager
def replicas(cluster: GpuCluster) -> Iterator[list[Replica]]:
    """Two replicas in place of the cluster's extender and scheduler, started again whenever they end."""
    made = [
        Replica("replica-a", *cluster.maker.replica("replica-a", "127.0.1.1", 10271)),
        Replica("replica-b", *cluster.maker.replica("replica-b", "127.0.1.2", 10272)),
    ]
    ended = threading.Event()
    restarts: collections.Counter[str] = collections.Counter()

    def restart() -> None:
        while not ended.wait(RESTART_S):
            for part in [part for replica in made for part in replica.parts if part.process.has_ended()]:
                part.stop()  # takes the exit status
                part.start(wait_ready=False)
                restarts[part.name] += 1

    kubelet = threading.Thread(target=restart)
    with stopped(cluster.scheduler), stopped(cluster.extender):
        try:
            for part in [part for replica in made for part in replica.parts]:
                part.start(wait_ready=False)
            kubelet.start()
            yield made
        finally:
            ended.set()
            kubelet.join()
            progress.say(f"two replicas: restarts {dict(restarts)}")
            for part in [part for replica in made for part in replica.parts]:
                part.kill()


def fault_of_leader(name: str, leader: Replica) -> None:
    match name:
        case "scheduler killed":
            leader.scheduler.process.signal(signal.SIGKILL)
        case "extender killed":
            leader.extender.process.signal(signal.SIGKILL)
        case "both terminated":
            for part in leader.parts:
                part.process.signal(signal.SIGTERM)
        case "both stopped for 25 s":
            for part in leader.parts:
                part.process.signal(signal.SIGSTOP)
            time.sleep(25)
            for part in leader.parts:
                part.process.signal(signal.SIGCONT)


def until_a_pod_runs(namespace: PodNamespace, name: str) -> float:
    """Return after how many seconds a new pod runs."""
    began = time.monotonic()
    namespace.create(pod(name, container(gpu_mem=256)))
    namespace.running(name, within_s=TAKEN_OVER_S)
    return time.monotonic() - began


@pytest.mark.timeout(900)  # with the wait for another test
@pytest.mark.usefixtures("one_at_a_time")
def test_two_replicas_place_every_pod_once_whatever_happens_to_the_leader(namespace: PodNamespace) -> None:
    cluster, since = namespace.cluster, namespace.cluster.control.audit.stat().st_size
    wanted, chance, took = [f"p{n}" for n in range(150)], random.Random(5), {}
    with replicas(cluster) as both:
        took["start"] = until_a_pod_runs(namespace, "first")
        creator = threading.Thread(target=create_slowly, args=(namespace, wanted, chance, 0.5))
        creator.start()
        for number, name in enumerate(
            ("scheduler killed", "extender killed", "both terminated", "both stopped for 25 s")
        ):
            leader = next(replica for replica in both if replica.host == holder(cluster, SCHEDULERS))
            fault_of_leader(name, leader)
            took[name] = until_a_pod_runs(namespace, f"probe-{number}")
            namespace.until(
                lambda: holder(cluster, SCHEDULERS) == holder(cluster, EXTENDERS) or None,
                "the extender beside the leading kube-scheduler holds the Lease",
                TAKEN_OVER_S,
            )
        creator.join()
        namespace.until(lambda: not pending(namespace), "every pod was placed", 120)
    progress.say(f"two replicas: a new pod runs after { ({name: round(s, 1) for name, s in took.items()}) } s")
    phases = collections.Counter(namespace.phases().values())
    assert set(phases) <= {"Running", "Succeeded"}, phases
    assert sum(phases.values()) == len(wanted) + len(took)
    for card, peak in audit.peaks(cluster.control.audit, since, namespace.name).items():
        assert peak.memory_mib <= 81920, card
        assert peak.cores <= 100, card
