"""The faults: each breaks something on a running cluster, and starts it again as a kubelet, or a boot, would."""

import os
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple

from cluster import nodes, process
from cluster.cluster import GpuCluster
from cluster.parts import ClusterPart

RESTART_S: Final = 1.0  # a kubelet starts an ended container again about a second later, the first time
BOOT_S: Final = 5.0

SCHEDULERS: Final = "/apis/coordination.k8s.io/v1/namespaces/vgpu-system/leases/vgpu-scheduler"
EXTENDERS: Final = "/apis/coordination.k8s.io/v1/namespaces/vgpu-system/leases/vgpu-extender"


class Injected(NamedTuple):
    """When a fault began, and when what it ended was started again, in seconds since 1970."""

    began: float
    restarted: float


Inject = Callable[[GpuCluster], Injected]


def extender_killed(cluster: GpuCluster) -> Injected:
    """Kill the extender, and start it again."""
    return _ended(cluster.extender.process, signal.SIGKILL)


def extender_stopped(cluster: GpuCluster) -> Injected:
    """Stop the extender, as a kubelet does, and start it again."""
    return _ended(cluster.extender.process, signal.SIGTERM)


def plugin_killed(cluster: GpuCluster) -> Injected:
    """Kill a device plugin, and start it again."""
    return _ended(cluster.plugins[0].process, signal.SIGKILL)


def plugin_stopped(cluster: GpuCluster) -> Injected:
    """Stop a device plugin, as a kubelet does, and start it again."""
    return _ended(cluster.plugins[0].process, signal.SIGTERM)


def _ended(victim: process.ClusterProcess, number: signal.Signals) -> Injected:
    began = time.time()
    victim.signal(number)
    victim.wait(60)
    time.sleep(RESTART_S)
    victim.start()
    return Injected(began, time.time())


def node_rebooted(cluster: GpuCluster) -> Injected:
    """End every process of a node and its containers, and what it has in memory, and start the node again."""
    node, plugin = cluster.nodes[0], cluster.plugins[0]
    began = time.time()
    for pid in _processes(node):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    for ended in (plugin.process, node.kubelet, node.containerd, node.mounts):
        ended.kill()  # takes the exit status
    for folder in (node.work / "run", node.work / "containerd" / "state"):
        shutil.rmtree(folder)
    (node.work / "run" / "netns").mkdir(parents=True)
    (node.work / "mounted").unlink()
    (node.work / "containerd.sock").unlink(missing_ok=True)
    time.sleep(BOOT_S)
    node.start([])
    cluster.plugins[0] = cluster.maker.plugin(node)
    time.sleep(RESTART_S)
    cluster.plugins[0].start(wait_ready=False)
    return Injected(began, time.time())


def _processes(node: nodes.ClusterNode) -> set[int]:
    """Return the processes of a node: those that share its mounts, and those of its pods."""
    here = _mounts(node.mounts.pid)
    alive = (int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit())
    folders = (folder for root in Path("/sys/fs/cgroup").rglob(node.cgroup) for folder in root.rglob("cgroup.procs"))
    return {pid for pid in alive if _mounts(pid) == here} | {
        int(pid) for file in folders for pid in file.read_text().split()
    }


def _mounts(pid: int) -> str:
    """Return the mount namespace of a process; empty where it has ended."""
    try:
        return str(Path(f"/proc/{pid}/ns/mnt").readlink())
    except OSError:
        return ""


class SchedulerReplica(NamedTuple):
    """A pod of the scheduler's Deployment: its host name, its extender, its kube-scheduler."""

    host: str
    extender: ClusterPart
    scheduler: ClusterPart

    @property
    def parts(self) -> tuple[ClusterPart, ClusterPart]:
        """Both containers."""
        return self.extender, self.scheduler


@contextmanager
def two_replicas(cluster: GpuCluster) -> Iterator[Sequence[SchedulerReplica]]:
    """Run two replicas in place of the cluster's extender and scheduler; what ends is started again."""
    made = [
        SchedulerReplica("replica-a", *cluster.maker.replica("replica-a", "127.0.1.1", 10271)),
        SchedulerReplica("replica-b", *cluster.maker.replica("replica-b", "127.0.1.2", 10272)),
    ]
    parts = [part for replica in made for part in replica.parts]
    ended = threading.Event()

    def restart() -> None:
        while not ended.wait(RESTART_S):
            for part in parts:
                if part.process.has_ended():
                    part.stop()  # takes the exit status
                    part.start(wait_ready=False)

    kubelet = threading.Thread(target=restart)
    cluster.scheduler.stop()
    cluster.extender.stop()
    for part in parts:
        part.start(wait_ready=False)
    kubelet.start()
    try:
        yield made
    finally:
        ended.set()
        kubelet.join()
        for part in parts:
            part.kill()
        cluster.extender.start()
        cluster.scheduler.start()


def leader_signalled(replicas: Sequence[SchedulerReplica], number: signal.Signals) -> Inject:
    """Return the fault that ends both containers of the replica that leads."""

    def inject(cluster: GpuCluster) -> Injected:
        leader = next(replica for replica in replicas if replica.host == holder(cluster, SCHEDULERS))
        began = time.time()
        for part in leader.parts:
            part.process.signal(number)
        return Injected(began, began)

    return inject


def holder(cluster: GpuCluster, lease: str) -> str:
    """Return the host that holds a Lease; empty where nobody does."""
    spec = cluster.api.get(lease)["spec"]
    return str(spec.get("holderIdentity") or "").rpartition("_")[0]
