"""Nodes: each is a mount namespace with a containerd, a kubelet and four simulated cards.

The kubelet's device-plugin folder and ours are fixed paths, so a node has its own /run, /var/lib and /var/log, kept
under the cluster's work folder where the harness can read them. A node's loopback address is also its name.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from cluster import accounts, cgroups, missing, namespace, nodefiles, ociruntime, process, wait
from cluster.programs.containerd import ContainerdMajor, InstalledContainerd
from simgpu import state_directory

_OWN = ("/run", "/var/lib", "/var/log")
# The kubelet sets three sysctls: it gets files that have its values already, so the machine's own stay unchanged.
STATUS_PERIOD = "2s"  # Kubernetes' default is 10 s
_CTR_S = 300  # importing the images of all parts takes minutes on a busy machine
_SYSCTLS = {"vm/overcommit_memory": "1\n", "kernel/panic": "10\n", "kernel/panic_on_oops": "1\n"}
_FOLDERS = (
    "run/netns",
    "lib/kubelet/device-plugins",
    "lib/kubelet/pod-resources",
    "lib/vgpu",
    "log/pods",
    "log/containers",
)


class ClusterNode:
    """One node of a cluster.

    Args:
        index: 1 for the first node.
        binaries: folder of the kubelet.
        work: the cluster's folder.
        within: the cluster's namespaces.
        cards: the cards of its driver.
        driver: folder of the simulated libraries.
        containerd: which containerd it runs.
        status_period: how often its kubelet publishes its status.
    """

    def __init__(
        self,
        index: int,
        binaries: Path,
        work: Path,
        within: namespace.LinuxNamespaces,
        cards: Sequence[state_directory.SimulatedCard],
        driver: Path,
        containerd: InstalledContainerd,
        status_period: str = STATUS_PERIOD,
    ) -> None:
        self.name = name(index)
        self.cards = tuple(cards)
        self.work = work / f"node{index}"
        self.mounts = process.ClusterProcess(
            f"node{index}-mounts", ["bash", "-c", self._mounting()], within, work / "logs"
        )
        self.cgroup = f"{within.name}-{index}"
        self._cluster_work = work
        self._within = within
        self._label = f"node{index}"
        self._driver = driver
        self._installed = containerd
        self._prepare(status_period)
        self._kubelet_command: list[str | Path] = [binaries / "kubelet", *self._kubelet_flags()]

    def _mounting(self) -> str:
        binds = [f"mount --bind {self.work}/{Path(path).name} {path}" for path in _OWN]
        binds += [f"mount --bind {self.work}/sys/{Path(key).name} /proc/sys/{key}" for key in _SYSCTLS]
        script = " && ".join(["mount --make-rshared /", *binds, f"touch {self.work}/mounted", "exec sleep infinity"])
        return f"exec unshare --mount --propagation private bash -c '{script}'"

    def _prepare(self, status_period: str) -> None:
        for folder in (*_FOLDERS, "sys", "simgpu", "containerd", "pki"):
            (self.work / folder).mkdir(parents=True)
        for key, value in _SYSCTLS.items():
            (self.work / "sys" / Path(key).name).write_text(value)
        text = nodefiles.containerd(self._installed.major, self.work, self.name, self.prepare_driver())
        (self.work / "containerd.toml").write_text(text)
        self._configure(status_period)

    def prepare_driver(self) -> Path:
        """Write the state of the simulated driver, and return the OCI runtime that hands its cards to containers."""
        runtime = self.work / "runtime"
        ociruntime.write(runtime, missing.which("runc") or "runc", self._driver, self.driver_state)
        state_directory.write_cards(self.driver_state, self.cards)
        return runtime

    @property
    def plugin_environment(self) -> dict[str, str]:
        """What the node's device plugin needs to see its driver."""
        return {"LD_LIBRARY_PATH": str(self._driver), "SIMGPU_STATE": str(self.driver_state)}

    @property
    def plugin_flags(self) -> list[str]:
        """Flags of the node's device plugin beside those of the DaemonSet."""
        return []

    def _configure(self, status_period: str) -> None:
        settings = nodefiles.kubelet(self.work, self.name, self.cgroup, status_period)
        (self.work / "kubelet.json").write_text(json.dumps(settings))

    def _kubelet_flags(self) -> list[str]:
        return [
            f"--config={self.work}/kubelet.json",
            f"--kubeconfig={accounts.path(self._cluster_work, self.name)}",
            f"--hostname-override={self.name}",
            "--root-dir=/var/lib/kubelet",
            f"--cert-dir={self.work}/pki",
            "--v=2",
        ]

    @property
    def containerd_major(self) -> ContainerdMajor:
        """The major version of its containerd."""
        return self._installed.major

    @property
    def driver_state(self) -> Path:
        """Folder of the simulated driver's state: its cards, their memory, injected faults."""
        return self.work / "simgpu"

    @property
    def state(self) -> Path:
        """/var/lib/vgpu of the node."""
        return self.work / "lib/vgpu"

    def start(self, archives: Sequence[Path]) -> None:
        """Start containerd, import the images, start the kubelet; returns before the node is Ready."""
        cgroups.create(self.cgroup)
        self.mounts.start()
        wait.until((self.work / "mounted").exists, f"mounts of {self.name}", 10, [self.mounts])
        self.containerd = self._containerd()
        self.kubelet = self.process("kubelet", self._kubelet_command, {"AWS_EC2_METADATA_DISABLED": "true"})
        self.containerd.start()
        wait.until((self.work / "containerd.sock").exists, f"containerd of {self.name}", 20, [self.containerd])
        for archive in archives:
            self.ctr("images", "import", archive)
        self.kubelet.start()

    def _containerd(self) -> process.ClusterProcess:
        command: list[str | Path] = [self._installed.program("containerd"), "-c", self.work / "containerd.toml"]
        return self.process("containerd", command, self._installed.environment())

    def process(
        self, part: str, command: Sequence[str | Path], environment: Mapping[str, str] | None = None
    ) -> process.ClusterProcess:
        """Make a process that sees the node's files; not yet started."""
        logs = self._cluster_work / "logs"
        return process.ClusterProcess(
            f"{self._label}-{part}", command, self._within, logs, environment, self.mounts.pid
        )

    def ctr(self, *arguments: str | Path) -> None:
        """Run containerd's client `ctr`, and wait for its end."""
        socket = str(self.work / "containerd.sock")
        client = self.process("ctr", [self._installed.program("ctr"), "-a", socket, "-n", "k8s.io", *arguments])
        client.start()
        status = client.wait(_CTR_S)
        if status:
            raise AssertionError(f"ctr {' '.join(map(str, arguments))} on {self.name}: {status}\n{client.tail()}")

    def restart_kubelet(self, status_period: str = STATUS_PERIOD) -> None:
        """Stop the kubelet as systemd would and start it again, with this period; containers keep running."""
        self._configure(status_period)
        self.kubelet.restart()


def serving_process(plugin: int) -> int:
    """Return the process that serves the kubelet: the child of a device plugin's first process, which is `plugin`."""
    (child,) = Path(f"/proc/{plugin}/task/{plugin}/children").read_text().split()
    return int(child)


def name(index: int) -> str:
    """Name and address of the node with this number, 1 the first."""
    return f"127.0.0.{index + 1}"
