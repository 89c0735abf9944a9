"""The faults: each breaks something on a running cluster, and starts it again as a kubelet, or a boot, would."""

import os
import shutil
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from cluster import nodes, process, wait
from cluster.additions import scheduler_replicas
from cluster.additions.scheduler_replicas import RESTART_S, SchedulerReplica
from cluster.cluster import GpuCluster

BOOT_S: Final = 5.0


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


def webhook_killed(cluster: GpuCluster) -> Injected:
    """Kill the webhook, and start it again."""
    return _ended(cluster.webhook.process, signal.SIGKILL)


def plugin_killed(cluster: GpuCluster) -> Injected:
    """Kill the process of a device plugin that serves the kubelet; the container's first process starts it again."""
    return _serving_killed(cluster.plugins[0].process.pid)


def _serving_killed(first: int) -> Injected:
    began = time.time()
    os.kill(nodes.serving_process(first), signal.SIGKILL)
    return Injected(began, time.time())


def plugin_container_killed(cluster: GpuCluster) -> Injected:
    """Kill both processes of a device plugin, as when its container exceeds its memory, and start it again."""
    first = cluster.plugins[0].process
    os.kill(nodes.serving_process(first.pid), signal.SIGKILL)
    return _ended(first, signal.SIGKILL)


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
    mounts = _mounts(node.mounts.pid)
    _kill(node, mounts)
    for ended in (plugin.process, node.kubelet, node.containerd, node.mounts):
        ended.kill()  # takes the exit status
    wait.until(lambda: not _kill(node, mounts), f"the end of all processes of {node.name}", BOOT_S)
    for folder in (node.work / "run", node.work / "containerd" / "state"):
        shutil.rmtree(folder)
    (node.work / "run" / "netns").mkdir(parents=True)
    (node.work / "mounted").unlink()
    (node.work / "containerd.sock").unlink(missing_ok=True)
    time.sleep(BOOT_S)
    node.start([])
    _start_again(node.kubelet)
    cluster.plugins[0] = cluster.maker.plugin(node)
    time.sleep(RESTART_S)
    cluster.plugins[0].start(wait_ready=False)
    return Injected(began, time.time())


def _start_again(kubelet: process.ClusterProcess) -> None:
    """Start a kubelet again that ends because containerd does not serve it yet, as systemd does."""
    for _ in range(int(BOOT_S / RESTART_S)):
        time.sleep(RESTART_S)
        if kubelet.has_ended():
            kubelet.restart()


def _kill(node: nodes.ClusterNode, mounts: str) -> set[int]:
    """Kill the processes of a node, which has this mount namespace; return those that there were."""
    found = _processes(node, mounts)
    for pid in found:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return found


def _processes(node: nodes.ClusterNode, mounts: str) -> set[int]:
    """Return the processes of a node: those that share its mounts, and those of its pods."""
    alive = (int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit())
    folders = (folder for root in Path("/sys/fs/cgroup").rglob(node.cgroup) for folder in root.rglob("cgroup.procs"))
    return {pid for pid in alive if _mounts(pid) == mounts} | {
        int(pid) for file in folders for pid in file.read_text().split()
    }


def _mounts(pid: int) -> str:
    """Return the mount namespace of a process; empty where it has ended."""
    try:
        return str(Path(f"/proc/{pid}/ns/mnt").readlink())
    except OSError:
        return ""


def leader_signalled(both: list[SchedulerReplica], number: signal.Signals) -> Inject:
    """Return the fault that ends both containers of the replica that leads."""

    def inject(cluster: GpuCluster) -> Injected:
        parts = scheduler_replicas.leader(cluster, both).parts
        began = time.time()
        for part in parts:
            part.process.signal(number)
        return Injected(began, began)

    return inject
