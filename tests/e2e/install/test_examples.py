"""Every example manifest is applied as it is, but for images, programs and amounts that this machine lacks."""

from pathlib import Path

import pytest
import yaml

from cluster import images
from cluster.cluster import GpuCluster
from tests.e2e.pod_namespace import FOREVER, Document, PodNamespace, is_running
from tests.manifests import examples
from vgpu.domain import names

pytestmark = pytest.mark.e2e


def for_this_machine(pod: Document) -> None:
    """Replace what this machine lacks; the request for GPUs, annotations and priorities stay."""
    pod["spec"]["terminationGracePeriodSeconds"] = 1
    for container in pod["spec"]["containers"]:
        container |= {"image": images.BASE, "command": list(FOREVER)}
        for key in ("args", "readinessProbe"):
            container.pop(key, None)
        limits = container["resources"]["limits"]
        container["resources"] = {"limits": {name: limits[name] for name in limits if name.startswith(names.DOMAIN)}}


@pytest.mark.parametrize("path", examples.FILES, ids=lambda path: path.stem)
def test_an_example_runs(cluster: GpuCluster, namespace: PodNamespace, path: Path) -> None:
    documents = examples.documents(path)
    wanted = 0
    for document in documents:
        for pod in examples.pods(document):
            for_this_machine(pod)
            wanted += len(cluster.nodes) if document["kind"] == "DaemonSet" else document["spec"].get("replicas", 1)
    manifest = yaml.safe_dump_all(documents)
    try:
        cluster.kubectl("apply", "-n", namespace.name, "-f", "-", stdin=manifest)
        namespace.until(lambda: [is_running(pod) for pod in namespace.all()] == [True] * wanted, f"{wanted} run")
    finally:
        cluster.kubectl("delete", "--ignore-not-found", "-n", namespace.name, "-f", "-", stdin=manifest)
