"""The chart with the cluster's own kube-scheduler: the extender runs on the network of the control-plane node."""

import re
import socket
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Final

import pytest
import yaml

from cluster import accounts, admin_service, api, nodes, wait
from cluster.command_line import vgpu
from cluster.pod_cluster import NAMESPACE, PodCluster, build_identity
from cluster.process import ClusterProcess
from cluster.programs import binaries, helm
from simgpu import state_directory
from tests import certificates
from tests.e2e.install.pod_clusters import make_with_logs
from tests.e2e.install.test_chart import ChartCluster
from tests.e2e.install.test_images import leftovers
from tests.e2e.install.test_upgrade import assert_limit, container_ids, holder
from tests.e2e.made_cluster import RUNTIME
from tests.e2e.pod_namespace import Document, PodNamespace, container, pod
from tests.manifests.chart import CHART
from vgpu.adapters.kubernetes import lease
from vgpu.domain import names

pytestmark = [pytest.mark.e2e, pytest.mark.images, pytest.mark.timeout(600, func_only=True)]

CONTROL_PLANE: Final = "node-role.kubernetes.io/control-plane"
WORKLOADS: Final = ("daemonset/vgpu-extender", "deployment/vgpu-webhook", "daemonset/vgpu-deviceplugin")
OTHER_HOST: Final = "another-control-plane"
SCHEDULERS_LEASE: Final = lease.path("kube-system", "kube-scheduler")
EXTENDERS_LEASE: Final = lease.path(NAMESPACE, "vgpu-extender")
MOVED_S: Final = 90  # the Lease expires, and the kubelet starts the extender again after a pause


class AddressedNode(nodes.ClusterNode):
    """A node whose address is not loopback's: the API server proxies to no pod on a loopback address."""

    def _kubelet_flags(self) -> list[str]:
        return [*super()._kubelet_flags(), f"--node-ip={admin_service.ADDRESS}"]


class ControlPlaneCluster(ChartCluster):
    """A cluster whose first node is on the control plane's network, as a control-plane node is.

    All nodes of the harness share that network, so the ports of the DaemonSet are free for one pod.
    """

    transcript = binaries.REPOSITORY / "build" / "cluster-scheduler.txt"

    def archives(self) -> list[Path]:
        return PodCluster.archives(self)

    def make_node(self, index: int, cards: int) -> nodes.ClusterNode:
        kind = AddressedNode if index == 1 else nodes.ClusterNode
        shown = state_directory.make_cards(cards, node=nodes.name(index))
        driver = binaries.REPOSITORY / "build" / "simgpu"
        return kind(index, self.programs, self.work, self.within, shown, driver, self.containerd, self.status_period)

    def wait_until_ready(self) -> None:
        for workload in WORKLOADS:
            self.kubectl("rollout", "status", "-n", NAMESPACE, workload, "--timeout=120s")
        wait.until(self._offers, "slices on every node", 120)

    def scheduler(self, name: str, port: int, host: str) -> ClusterProcess:
        """The cluster's own kube-scheduler of one host, with the configuration that Helm's notes print; not started."""
        notes = self.helm("get", "notes", "vgpushare")
        printed = yaml.safe_load("".join(re.findall(r"^  (?!kubectl)(.*\n)", notes, re.MULTILINE)))
        assert printed.keys() == {"extenders", "percentageOfNodesToScore"}
        return self.control.scheduler_of(name, accounts.SCHEDULER.name, printed, port, host)

    def holder(self, path: str) -> str:
        """The host of a Lease's holder; empty where there is none."""
        found = self.api.find(path)
        return lease.decode(found).holder.rpartition("_")[0] if found else ""


@pytest.fixture(scope="module")
def pods(pytestconfig: pytest.Config) -> Iterator[ControlPlaneCluster]:
    with certificates.of_the_machine():
        helm.ensure()
    ControlPlaneCluster.transcript.unlink(missing_ok=True)
    build = partial(ControlPlaneCluster, cards=2, runtime=RUNTIME)
    with make_with_logs(pytestconfig, "cluster-scheduler", build) as made:
        yield made


def test_the_cluster_scheduler_places_gpu_pods(pods: ControlPlaneCluster) -> None:
    """One test: its steps build on each other."""
    host = socket.gethostname()
    install(pods)
    assert_reads_one_lease(pods)
    assert_the_policy_demands_the_scheduler(pods)
    pods.control.scheduler.stop()
    first, second = pods.scheduler("scheduler-here", 10259, host), pods.scheduler("scheduler-there", 10260, OTHER_HOST)
    first.start()
    namespace = PodNamespace(pods, "users")  # type: ignore[arg-type] # it needs no process of the harness

    create_admitted(namespace, holder("share", pods.nodes[1].cards[0].uuid))
    namespace.create(pod("plain"))
    namespace.running("share", "plain")
    assert_limit(namespace, "share", 8192, free=4000)
    assert names.ASSIGNMENT not in namespace.get("plain")["metadata"].get("annotations", {})
    assert pods.holder(SCHEDULERS_LEASE) == pods.holder(EXTENDERS_LEASE) == host
    assert_commands_reach_the_extender(pods)

    assert_follows_the_leading_scheduler(namespace, first, second, host)

    before = container_ids(namespace)
    pods.helm("uninstall", "vgpushare", "--wait")
    assert container_ids(namespace) == before
    assert_limit(namespace, "share", 8192, free=4000)
    namespace.create(pod("plain-after"))
    namespace.running("plain-after")  # the scheduler that still names the extender asks it about pods with a GPU only
    pods.kubectl("delete", "namespace", NAMESPACE)
    pods.kubectl("delete", "crd", "gpunodes.vgpu.io")
    pods.kubectl("label", "nodes", "--all", "vgpu.io/enabled-")
    assert not list(leftovers(pods))


def install(cluster: ControlPlaneCluster) -> None:
    """As README.md says, with the values as they are but for the mode."""
    cluster.kubectl("create", "namespace", NAMESPACE)
    cluster.kubectl("label", "namespace", NAMESPACE, "pod-security.kubernetes.io/enforce=privileged")
    cluster.kubectl("label", "node", cluster.nodes[0].name, f"{CONTROL_PLANE}=")
    cluster.kubectl("label", "nodes", "--all", "vgpu.io/enabled=true")
    chart, tag = str(CHART.relative_to(binaries.REPOSITORY)), build_identity().tag
    values = ("--set", f"image.tag={tag}", "--set", "scheduler.mode=cluster")
    cluster.helm("install", "vgpushare", chart, *values, "--wait")
    cluster.wait_until_ready()


def assert_reads_one_lease(cluster: ControlPlaneCluster) -> None:
    account = f"--as=system:serviceaccount:{NAMESPACE}:vgpu-extender"
    for name, answer in (("leases/kube-scheduler", "yes"), ("leases/kube-controller-manager", "no"), ("leases", "no")):
        asked = cluster.kubectl("auth", "can-i", "watch", name, "-n", "kube-system", account, check=False)
        assert asked.split()[0] == answer, name


def assert_the_policy_demands_the_scheduler(cluster: ControlPlaneCluster) -> None:
    """In a namespace whose pods the webhook does not see."""
    manifest = pod("forged", container(gpu_mem=256, limits={names.SLICE: "1"}))
    manifest["spec"]["schedulerName"] = names.SCHEDULER
    with pytest.raises(api.RequestRefused, match=r"need spec\.schedulerName default-scheduler; leave"):
        cluster.api.create(f"/api/v1/namespaces/{NAMESPACE}/pods", manifest)


def create_admitted(namespace: PodNamespace, manifest: dict[str, object]) -> None:
    """Create a GPU pod, which keeps the name of the cluster's scheduler; again while the webhook is not trusted yet."""

    def is_admitted() -> Document | None:
        made = namespace.create(manifest)
        if names.SLICE in made["spec"]["containers"][0]["resources"]["limits"]:
            return made
        namespace.delete(made["metadata"]["name"])
        return None

    made = namespace.until(is_admitted, "a pod is admitted")
    assert made["spec"]["schedulerName"] == "default-scheduler"


def assert_commands_reach_the_extender(cluster: ControlPlaneCluster) -> None:
    code, output = vgpu(cluster, accounts.ADMIN.name, "get", "gpus")
    assert code == 0, output
    assert re.search(rf"^{re.escape(cluster.nodes[1].name)} +0 .* 8Gi +- +72Gi +30% ", output, re.MULTILINE), output
    assert output.count("NVIDIA H100") == 4, output
    code, output = vgpu(cluster, accounts.ADMIN.name, "version", "--server")
    assert code == 0, output
    assert re.search(rf"^extender +{re.escape(build_identity().version)}", output, re.MULTILINE), output


def assert_follows_the_leading_scheduler(
    namespace: PodNamespace, first: ClusterProcess, second: ClusterProcess, host: str
) -> None:
    """While the kube-scheduler of another host leads, the extender of this one binds nothing; then it does again."""
    cluster = namespace.cluster
    assert isinstance(cluster, ControlPlaneCluster)
    second.start()
    first.stop()
    wait.until(lambda: cluster.holder(SCHEDULERS_LEASE) == OTHER_HOST, "another host's scheduler leads", MOVED_S)
    wait.until(lambda: not cluster.holder(EXTENDERS_LEASE), "the extender leads no more", MOVED_S)
    namespace.create(pod("waits", gpu_mem=1024))
    namespace.until(lambda: "NotLeader" in str(namespace.events("waits")), "an event says that no leader was asked")
    assert "nodeName" not in namespace.get("waits")["spec"]
    first.start()
    second.stop()
    namespace.running("waits", within_s=MOVED_S)
    assert cluster.holder(EXTENDERS_LEASE) == host
