"""A real Kubernetes cluster on this machine, in private Linux namespaces; `close` removes everything.

    with BareCluster() as cluster:
        cluster.api.get("/api/v1/nodes")

Without vgpushare; `cluster.cluster.GpuCluster` has vgpushare installed.
"""

import shutil
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Self

from cluster import accounts, api, controlplane, images, namespace, nodefiles, nodes, pki, wait
from cluster.programs import binaries, containerd
from cluster.programs.containerd import ContainerdMajor
from simgpu import state_directory

DRIVER = binaries.REPOSITORY / "build" / "simgpu"

_READY_S = 60
_KUBECTL = """#!/bin/sh
exec nsenter -t {pid} -n -- env KUBECONFIG={kubeconfig} {binary} "$@"
"""


class BareCluster:
    """A control plane and nodes with simulated cards.

    Args:
        count: how many nodes.
        cards: how many cards each node has.
        status_period: how often kubelets publish their node's status; "10s" is Kubernetes' default.
        runtime: which containerd the nodes run; Debian's by default.
    """

    pod_network = False  # true: pods reach each other and the API server, and get their accounts' tokens

    def __init__(
        self,
        count: int = 2,
        cards: int = 4,
        status_period: str = nodes.STATUS_PERIOD,
        runtime: ContainerdMajor = ContainerdMajor.DEBIAN,
    ) -> None:
        self.programs = binaries.ensure()
        self.containerd = containerd.ensure(runtime)
        self.work = Path(tempfile.mkdtemp(prefix="vgpu-e2e-", dir="/tmp"))
        self.within = namespace.LinuxNamespaces(self.work.name, self.work)
        for folder in ("config", "logs"):
            (self.work / folder).mkdir()
        pki.write(self.work / "pki")
        accounts.write(self.work, [nodes.name(index) for index in range(1, count + 1)])
        nodefiles.write_cni(self.work / nodefiles.CNI_FOLDER, bridge=self.pod_network)
        self.control = controlplane.ControlPlane(self.programs, self.work, self.within, tokens=self.pod_network)
        self.status_period = status_period
        self.nodes = [self.make_node(index, cards) for index in range(1, count + 1)]
        token = accounts.token(self.work, accounts.ADMIN.name)
        self.api = api.ClusterApi(self.within, token, self.work / "pki" / "ca.crt")

    def make_node(self, index: int, cards: int) -> nodes.ClusterNode:
        """Make a node; not yet started."""
        shown = state_directory.make_cards(cards, node=nodes.name(index))
        return nodes.ClusterNode(
            index, self.programs, self.work, self.within, shown, DRIVER, self.containerd, self.status_period
        )

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def start(self) -> None:
        """Start everything and return when all nodes are Ready."""
        self.control.start_store()
        self._write_kubectl()
        archives = self.archives()
        with ThreadPoolExecutor() as pool:
            started = [pool.submit(node.start, archives) for node in self.nodes]
            wait.until(self.api.ready, "API server", _READY_S, [self.control.etcd, self.control.apiserver])
            self.control.start_controllers()
            for start in started:
                start.result()
        kubelets = [node.kubelet for node in self.nodes]
        wait.until(self._nodes_ready, "nodes Ready", _READY_S, [*kubelets, *self.control.processes])

    def create_namespace(self, name: str) -> None:
        """Create a Kubernetes namespace, and return when pods can be created in it."""
        self.api.create("/api/v1/namespaces", {"metadata": {"name": name}})

    def archives(self) -> list[Path]:
        """Write the images that every node imports."""
        return images.build(self.work / "images", DRIVER / "gpuprobe")

    def _nodes_ready(self) -> bool:
        ready = [node["metadata"]["name"] for node in self.api.get("/api/v1/nodes")["items"] if _is_ready(node)]
        return len(ready) == len(self.nodes)

    def _write_kubectl(self) -> None:
        for account, name in ((accounts.ADMIN, "kubectl"), (accounts.TENANT, "kubectl-tenant")):
            script = self.work / name
            kubeconfig = accounts.path(self.work, account.name)
            script.write_text(
                _KUBECTL.format(pid=self.within.pid, kubeconfig=kubeconfig, binary=self.programs / "kubectl")
            )
            script.chmod(0o755)

    def kubectl(self, *arguments: str, stdin: str | None = None, check: bool = True) -> str:
        """Run kubectl as admin and return its output; raises AssertionError with its error output."""
        command = [str(self.work / "kubectl"), *arguments]
        done = subprocess.run(command, input=stdin, capture_output=True, text=True, check=False)
        if check and done.returncode:
            raise AssertionError(f"kubectl {' '.join(arguments)}: {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout + done.stderr

    def save_logs(self, target: Path) -> None:
        """Copy all logs, with the audit log, to a folder that outlives the cluster."""
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(self.work / "logs", target)

    def close(self) -> None:
        """End every process; returns when nothing is left of the cluster."""
        self.api.close()
        self.within.close()


def _is_ready(node: api.Document) -> bool:
    conditions = node.get("status", {}).get("conditions", [])
    return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)
