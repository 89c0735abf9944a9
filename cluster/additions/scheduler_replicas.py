"""Two replicas of the scheduler's Deployment in place of the cluster's one: each a kube-scheduler with its extender.

What ends is started again a second later, as a kubelet starts containers.
"""

import collections
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple

from cluster import admin_service, progress
from cluster.cluster import GpuCluster
from cluster.parts import NAMESPACE, ClusterPart, stopped

RESTART_S: Final = 1.0  # after which a kubelet starts an ended container again, the first time

_LEASES: Final = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases"
SCHEDULERS: Final = f"{_LEASES}/vgpu-scheduler"
EXTENDERS: Final = f"{_LEASES}/vgpu-extender"


class SchedulerReplica(NamedTuple):
    """A pod of the scheduler's Deployment: host name, URL of its admin REST, its extender, its kube-scheduler."""

    host: str
    rest: str
    extender: ClusterPart
    scheduler: ClusterPart

    @property
    def parts(self) -> tuple[ClusterPart, ClusterPart]:
        """Both containers."""
        return self.extender, self.scheduler


@contextmanager
def two_replicas(cluster: GpuCluster) -> Iterator[list[SchedulerReplica]]:
    """Run two replicas in place of the cluster's extender and scheduler."""
    made = [_made(cluster, "replica-a", "127.0.1.1", 10271), _made(cluster, "replica-b", "127.0.1.2", 10272)]
    parts = [part for replica in made for part in replica.parts]
    ended = threading.Event()
    restarts: collections.Counter[str] = collections.Counter()

    def restart() -> None:
        while not ended.wait(RESTART_S):
            for part in [part for part in parts if part.process.has_ended()]:
                part.stop()  # takes the exit status
                part.start(wait_ready=False)
                restarts[part.name] += 1

    kubelet = threading.Thread(target=restart)
    with stopped(cluster.scheduler), stopped(cluster.extender):
        try:
            for part in parts:
                part.start(wait_ready=False)
            kubelet.start()
            yield made
        finally:
            ended.set()
            kubelet.join()
            progress.say(f"two replicas: restarts {dict(restarts)}")
            for part in parts:
                part.kill()


def _made(cluster: GpuCluster, host: str, address: str, scheduler_port: int) -> SchedulerReplica:
    """Make a replica whose admin REST serves no TLS, because it listens on loopback."""
    listen = f"{address}:{admin_service.PORT}"
    admin = (f"--admin-listen={listen}", "--admin-auth=kubernetes")
    parts = cluster.maker.replica(host, address, scheduler_port, admin)
    return SchedulerReplica(host, f"http://{listen}", *parts)


def holder(cluster: GpuCluster, lease: str) -> str:
    """Return the host that holds a Lease; empty where no host does."""
    spec = cluster.api.get(lease)["spec"]
    return str(spec.get("holderIdentity") or "").rpartition("_")[0]


def leader(cluster: GpuCluster, replicas: list[SchedulerReplica]) -> SchedulerReplica:
    """Return the replica whose kube-scheduler leads. Raises StopIteration where none does."""
    return next(replica for replica in replicas if replica.host == holder(cluster, SCHEDULERS))
