"""The Helm chart on a cluster: over the kustomize installation, to another version, back, and away; a pod runs on.

Beside it, what Argo CD and Flux look at: whether the objects in the cluster are still those of the chart.
"""

import dataclasses
import os
import re
import shlex
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from cluster import accounts, wait
from cluster.command_line import vgpu
from cluster.pod_cluster import NAMESPACE, PodCluster, build_identity
from cluster.programs import binaries, helm
from images import oci
from tests import certificates
from tests.e2e.install.pod_clusters import make_with_logs
from tests.e2e.install.test_images import UNINSTALL, leftovers, uninstall_commands
from tests.e2e.install.test_upgrade import assert_limit, container_ids, create_admitted, holder
from tests.e2e.made_cluster import RUNTIME
from tests.e2e.pod_namespace import PodNamespace
from tests.manifests.chart import CHART
from webhook.certificates import renewal

pytestmark = [pytest.mark.e2e, pytest.mark.images, pytest.mark.timeout(900, func_only=True)]

OTHER: Final = "another-version"
TAKEN: Final = ("--server-side", "--force-conflicts", "--field-manager=helm")
TRANSCRIPT: Final = binaries.REPOSITORY / "build" / "chart.txt"
# What `helm uninstall` leaves: the CRD, the namespace, Leases in it, and the label of the nodes.
STAYS: Final = re.compile(
    r"gpunodes\.vgpu\.io$|^apiservices\S* v1alpha1\.vgpu\.io$|^namespaces vgpu-system$|^vgpu\.io/enabled$"
    r"|^leases\S* vgpu-(?:extender|scheduler|node-\S+)$"
)
WORKLOADS: Final = ("deployments/vgpu-scheduler", "deployments/vgpu-webhook", "daemonsets/vgpu-deviceplugin")
CA: Final = f"/api/v1/namespaces/{NAMESPACE}/secrets/vgpu-webhook-ca"


class ChartCluster(PodCluster):
    """A cluster whose nodes have the images of this checkout under two tags, as of two versions."""

    transcript = TRANSCRIPT

    def archives(self) -> list[Path]:
        archive = self.work / "other.tar"
        with tempfile.TemporaryDirectory(dir=self.work) as scratch:
            made = self.built(binaries.REPOSITORY, Path(scratch))
            oci.write([dataclasses.replace(image, reference=of_other(image.reference)) for image in made], archive)
        return [*super().archives(), archive]

    def run(self, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run Helm or kubectl as an administrator, and add command and output to the transcript."""
        homes = {f"HELM_{name}_HOME": str(self.work / "helm") for name in ("CACHE", "CONFIG", "DATA")}
        path = helm.ensure() if program == helm.PROGRAM else self.programs / program
        command = ["nsenter", "-t", str(self.within.pid), "-n", str(path), *arguments]
        environment = os.environ | homes | {"KUBECONFIG": str(accounts.path(self.work, accounts.ADMIN.name))}
        done = subprocess.run(
            command, env=environment, check=False, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            cwd=binaries.REPOSITORY, timeout=300,
        )  # fmt: skip
        with self.transcript.open("a") as file:
            file.write(f"$ {program} {' '.join(arguments)}\n{done.stdout}({done.returncode})\n\n")
        return done

    def helm(self, *arguments: str) -> str:
        done = self.run(helm.PROGRAM, *arguments, "--namespace", NAMESPACE)
        assert done.returncode == 0, done.stdout
        return done.stdout

    def upgrade(self, tag: str, *options: str) -> None:
        """Install the chart or upgrade to it."""
        chart = str(CHART.relative_to(binaries.REPOSITORY))
        self.helm("upgrade", "--install", "vgpushare", chart, "--set", f"image.tag={tag}", "--wait", *options)
        self.wait_until_ready()


def of_other(reference: str) -> str:
    return f"{reference.rpartition(':')[0]}:{OTHER}"


@pytest.fixture(scope="module")
def pods(pytestconfig: pytest.Config) -> Iterator[ChartCluster]:
    with certificates.of_the_machine():
        helm.ensure()
    TRANSCRIPT.unlink(missing_ok=True)
    with make_with_logs(pytestconfig, "chart", lambda: ChartCluster(cards=2, runtime=RUNTIME)) as made:
        yield made


def test_over_kustomize_to_another_version_back_and_away(pods: ChartCluster) -> None:
    """One test: its steps build on each other."""
    tag = build_identity().tag
    pods.install()
    namespace = PodNamespace(pods, "users")  # type: ignore[arg-type] # it needs no process of the harness
    uuids = [node.cards[0].uuid for node in pods.nodes]
    create_admitted(namespace, holder("first", uuids[0]))
    namespace.running("first")
    before = container_ids(namespace)

    pods.kubectl("apply", "-k", str(pods.overlay()), *TAKEN)
    pods.upgrade(tag, "--take-ownership")
    assert tags(pods) == {tag}
    assert_no_drift(pods)

    pods.upgrade(OTHER)
    assert tags(pods) == {OTHER}
    assert container_ids(namespace) == before
    assert_skew_is_told(pods)
    create_admitted(namespace, holder("second", uuids[1]))
    namespace.running("second")
    assert_limit(namespace, "second", 8192, free=4000)
    before = container_ids(namespace)

    pods.upgrade(OTHER, "--reset-then-reuse-values", "--set", "webhook.replicas=3")
    assert pods.api.get(f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/vgpu-webhook")["spec"]["replicas"] == 3
    pods.helm("rollback", "vgpushare", "1", "--wait")
    pods.wait_until_ready()
    assert tags(pods) == {tag}
    assert container_ids(namespace) == before
    assert_limit(namespace, "first", 8192, free=4000)
    create_admitted(namespace, holder("third", uuids[0]))
    namespace.running("third")
    assert_no_drift(pods)

    before = container_ids(namespace)
    assert_away(pods)
    assert container_ids(namespace) == before
    assert_limit(namespace, "first", 8192, free=4000)
    namespace.delete("first", "second", "third")
    assert len(list(uninstall_commands(pods, first=1))) == 4
    assert not [node.name for node in pods.nodes if node.state.exists()]
    assert not list(leftovers(pods))


def assert_away(cluster: ChartCluster) -> None:
    """The documented commands run, and what Helm leaves behind is what the document says."""
    first, *others = UNINSTALL[1].splitlines()
    for line in (first, *others):
        done = cluster.run(*shlex.split(line, comments=True))
        assert done.returncode == 0, done.stdout
        if line == first:  # pods end later
            wait.until(lambda: all(map(STAYS.search, leftovers(cluster))), "only what is documented is left", 90)


def assert_skew_is_told(cluster: ChartCluster) -> None:
    """The images have this checkout's version inside, and the name of another one outside."""
    code, output = vgpu(cluster, accounts.ADMIN.name, "version", "--server")
    with TRANSCRIPT.open("a") as file:
        file.write(f"$ vgpu version --server\n{output}({code})\n\n")
    inside = build_identity().version
    assert code == 1, output
    assert re.search(rf"^webhook +{OTHER} +2 pods", output, re.MULTILINE), output
    for part in ("admin", "extender", "deviceplugin"):
        assert re.search(rf"^{part} +{re.escape(inside)} ", output, re.MULTILINE), output
    assert "version skew: this program is" in output


def tags(cluster: PodCluster) -> set[str]:
    """Tags of our images in all pods that are to stay."""
    items = cluster.api.get(f"/api/v1/namespaces/{NAMESPACE}/pods")["items"]
    staying = [item["spec"] for item in items if "deletionTimestamp" not in item["metadata"]]
    images = [found["image"] for spec in staying for found in spec["containers"]]
    return {image.rpartition(":")[2] for image in images if "vgpushare-" in image}


def assert_no_drift(cluster: ChartCluster) -> None:
    """No tool sees a difference, before and after a new CA, the most that we write into objects of the chart."""
    manifest = cluster.work / "manifest.yaml"
    manifest.write_text(cluster.helm("get", "manifest", "vgpushare"))
    assert_equal(cluster, manifest)
    before = bundles(cluster)
    cluster.api.patch(CA, {"data": None})
    wait.until(lambda: bundles(cluster) not in (before, {""}), "the API server trusts a new CA", 3 * renewal.PAUSE_S)
    assert_equal(cluster, manifest)


def assert_equal(cluster: ChartCluster, manifest: Path) -> None:
    for options in ((), ("--server-side", "--force-conflicts", "--field-manager=kustomize-controller")):
        done = cluster.run("kubectl", "diff", "-f", str(manifest), *options)
        assert done.returncode == 0, done.stdout


def bundles(cluster: PodCluster) -> set[str]:
    path = "/apis/admissionregistration.k8s.io/v1"
    kinds = ("mutatingwebhookconfigurations", "validatingwebhookconfigurations")
    found = [cluster.api.get(f"{path}/{kind}/vgpu-webhook")["webhooks"] for kind in kinds]
    return {webhook["clientConfig"].get("caBundle", "") for webhooks in found for webhook in webhooks}
