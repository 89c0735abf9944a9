"""The parts of vgpushare as processes, each with a token of its ServiceAccount, so that the installed RBAC applies.

Command lines are those of the Deployments and of the DaemonSet, except for addresses and kubeconfigs.
"""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx
import yaml

from cluster import accounts, admin_service, api, bare, nodes, process, wait
from cluster.programs import binaries

EXTENDER = "http://127.0.0.1:9870"
ADMIN = f"{admin_service.ADDRESS}:{admin_service.PORT}"
WEBHOOK = "https://127.0.0.1:9443"
NAMESPACE = "vgpu-system"
EXTENDER_METRICS_PORT = 9874
SCHEDULER_PORT = 10261
METRICS_PORT = 9872  # of each node's device plugin, at the node's own address

_ACCOUNTS = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts"
_SCHEDULER_CONFIG = binaries.REPOSITORY / "manifests" / "base" / "scheduler-config.yaml"
_EXTENDER_PORT = 9870
_DAY_S = 86400
_READY_S = 60


class ClusterPart:
    """A process and the check whether it is ready."""

    def __init__(self, running: process.ClusterProcess, ready: Callable[[], bool]) -> None:
        self.process = running
        self._ready = ready

    @property
    def name(self) -> str:
        return self.process.name

    @property
    def log(self) -> Path:
        return self.process.log

    def start(self, *flags: str, wait_ready: bool = True) -> None:
        """Start it, with more flags if given, and wait until it is ready."""
        self.process.start(*flags)
        if wait_ready:
            self.wait_ready()

    def wait_ready(self) -> None:
        wait.until(self._ready, f"{self.name} ready", _READY_S, [self.process])

    def stop(self) -> int:
        """Send SIGTERM, as the kubelet does; returns the exit status."""
        return self.process.stop()

    def kill(self) -> None:
        """Send SIGKILL."""
        self.process.kill()

    def restart(self, *flags: str) -> None:
        self.stop()
        self.start(*flags)


@contextmanager
def stopped(part: ClusterPart) -> Iterator[None]:
    """Stop a part, and start it again at the end."""
    part.stop()
    try:
        yield
    finally:
        part.start()


def _bytecode(work: Path) -> dict[str, str]:
    """Return where parts write compiled modules, if this machine's settings keep programs from writing them."""
    if not os.environ.get("PYTHONDONTWRITEBYTECODE"):
        return {}
    return {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(work / "bytecode")}


class Maker:
    """Makes the parts of one cluster; the manifests must be applied before."""

    def __init__(self, cluster: bare.BareCluster) -> None:
        self._cluster = cluster
        # A part whose TLS connections are kept by an idle client ends only after its grace of 2 s.
        headers = {"Connection": "close"}
        self._http = httpx.Client(transport=api.Transport(cluster.within, verify=False), headers=headers, timeout=5)
        modules = os.pathsep.join(filter(None, (str(binaries.REPOSITORY), os.environ.get("PYTHONPATH"))))
        # Of each part made from now on. Modules are compiled once, as they are in the images: a restart compiles none.
        self.environment = {"PYTHONPATH": modules, "TMPDIR": str(cluster.work / "tmp")} | _bytecode(cluster.work)
        (cluster.work / "tmp").mkdir(exist_ok=True)

    @property
    def history(self) -> Path:
        """The folder of the extender's history."""
        return self._cluster.work / "history"

    def close(self) -> None:
        self._http.close()

    def extender(self) -> ClusterPart:
        flags = [
            f"--kubeconfig={self._kubeconfig('vgpu-extender')}",
            f"--history-dir={self.history}",
            f"--admin-listen={ADMIN}",
            "--admin-auth=kubernetes",
            f"--metrics-listen=127.0.0.1:{EXTENDER_METRICS_PORT}",
        ]
        urls = f"{EXTENDER}/readyz", f"https://{ADMIN}/healthz"
        return ClusterPart(self._process("extender", flags), lambda: all(map(self.answers, urls)))

    def scheduler(self, name: str = "vgpu-scheduler", program: Path | None = None, host: str = "") -> ClusterPart:
        """The kube-scheduler beside the extender, with an account of its own.

        Args:
            name: of the process.
            program: another kube-scheduler than the cluster's.
            host: its host name; with it the scheduler takes part in the election of a leader.
        """
        settings = yaml.safe_load(_SCHEDULER_CONFIG.read_text())
        account = self._kubeconfig("vgpu-scheduler").stem
        running = self._cluster.control.scheduler_of(name, account, settings, SCHEDULER_PORT, host, program)
        path = "healthz" if program else "readyz"  # the kube-scheduler of Kubernetes 1.30 has no /readyz
        return ClusterPart(running, lambda: self.answers(f"https://127.0.0.1:{SCHEDULER_PORT}/{path}"))

    def replica(
        self, host: str, address: str, scheduler_port: int, admin: Sequence[str] = ("--admin-listen=off",)
    ) -> tuple[ClusterPart, ClusterPart]:
        """An extender and its kube-scheduler as one replica of the Deployment: a pod with a host name of its own.

        Args:
            host: the host name.
            address: on which the extender listens, of the loopback device.
            scheduler_port: of kube-scheduler's own endpoints.
            admin: flags of the admin REST and of the history; without them the replica has no REST.
        """
        settings = yaml.safe_load(_SCHEDULER_CONFIG.read_text())
        url = f"http://{address}:{_EXTENDER_PORT}"
        settings["extenders"][0]["urlPrefix"] = url
        kubeconfig, account = self._kubeconfig("vgpu-extender"), self._kubeconfig("vgpu-scheduler").stem
        lease = settings["leaderElection"]["resourceName"]
        flags = [
            f"--kubeconfig={kubeconfig}",
            f"--listen={address}:{_EXTENDER_PORT}",
            f"--scheduler-lease={lease}",
            f"--history-dir={self.history}-{host}",
            *admin,
        ]
        extender = self._process("extender", flags, host)
        control = self._cluster.control
        scheduler = control.scheduler_of(f"scheduler-{host}", account, settings, scheduler_port, host)
        return (
            ClusterPart(extender, lambda: self.answers(f"{url}/readyz")),
            ClusterPart(scheduler, lambda: self.answers(f"https://127.0.0.1:{scheduler_port}/healthz")),
        )

    def webhook(self) -> ClusterPart:
        flags = [f"--kubeconfig={self._kubeconfig('vgpu-webhook')}", "--metrics-listen=127.0.0.1:9873"]
        return ClusterPart(self._process("webhook", flags), self._mutates)

    def plugin(self, node: nodes.ClusterNode, name: str = "deviceplugin") -> ClusterPart:
        """The device plugin of a node, or another copy; ready when the kubelet has published what it offers."""
        kubeconfig = self._kubeconfig("vgpu-deviceplugin", node)
        command = [
            sys.executable,
            "-m",
            "deviceplugin",
            f"--kubeconfig={kubeconfig}",
            f"--node-name={node.name}",
            f"--metrics-listen={node.name}:{METRICS_PORT}",
            *node.plugin_flags,
        ]
        running = node.process(name, command, self.environment | node.plugin_environment)
        return ClusterPart(running, lambda: self._offers(node))

    def _process(self, part: str, flags: Sequence[str], host: str = "") -> process.ClusterProcess:
        return process.ClusterProcess(
            f"{part}-{host}" if host else part,
            [sys.executable, "-m", part, *flags],
            self._cluster.within,
            self._cluster.work / "logs",
            self.environment,
            host=host,
        )

    def _kubeconfig(self, account: str, node: nodes.ClusterNode | None = None) -> Path:
        """Request a token as the kubelet does for a pod of this account, naming the node it is on."""
        spec: api.Document = {"expirationSeconds": _DAY_S}
        if node:
            uid = self._cluster.api.get(f"/api/v1/nodes/{node.name}")["metadata"]["uid"]
            spec["boundObjectRef"] = {"apiVersion": "v1", "kind": "Node", "name": node.name, "uid": uid}
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
        token = self._cluster.api.create(f"{_ACCOUNTS}/{account}/token", request)["status"]["token"]
        return accounts.kubeconfig(self._cluster.work, f"{account}-{node.name}" if node else account, token)

    def answers(self, url: str) -> bool:
        """Whether a GET inside the cluster's network succeeds."""
        try:
            return self._http.get(url).is_success
        except httpx.TransportError:
            return False

    def _mutates(self) -> bool:
        """Whether the API server reaches the webhook and trusts its certificate.

        A webhook that starts between the mutating and the validating call refuses the unmutated pod.
        """
        limits = {"limits": {"vgpu.io/gpu-mem": "256"}}
        container = {"name": "main", "image": "none", "resources": limits}
        pod = {"metadata": {"name": "is-the-webhook-there"}, "spec": {"containers": [container]}}
        try:
            created = self._cluster.api.request("POST", "/api/v1/namespaces/default/pods", pod, query={"dryRun": "All"})
        except api.RequestRefused:
            return False
        return "vgpu.io/slice" in created["spec"]["containers"][0]["resources"]["limits"]

    def _offers(self, node: nodes.ClusterNode) -> bool:
        status = self._cluster.api.get(f"/api/v1/nodes/{node.name}")["status"]
        offered: str = status["allocatable"].get("vgpu.io/slice", "0")
        return offered != "0"
