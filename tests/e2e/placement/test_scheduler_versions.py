"""The kube-schedulers of the oldest, a middle and the newest supported version work with our configuration."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from cluster.cluster import GpuCluster
from cluster.parts import SCHEDULER_PORT, ClusterPart
from cluster.programs import binaries, schedulers
from tests.e2e.pod_namespace import PodNamespace, pod
from vgpu.domain.identifiers import ContainerName

pytestmark = pytest.mark.e2e

DEPLOYMENT = binaries.REPOSITORY / "manifests" / "base" / "extender.yaml"
TOO_MUCH_MIB = 1 << 20


@pytest.fixture(params=[*schedulers.VERSIONS, "1.36"])
def program(request: pytest.FixtureRequest) -> Path:
    """A kube-scheduler of the version; 1.36 is the cluster's own."""
    version: str = request.param
    if version == "1.36":
        found = binaries.ensure() / "kube-scheduler"
    else:
        built = schedulers.programs(version)
        if not built.is_built():
            pytest.skip(f"kube-scheduler {version} is not built: python -m cluster.programs.schedulers")
        found = built.folder / "kube-scheduler"
    said = subprocess.run([found, "--version"], capture_output=True, text=True, check=True).stdout
    assert said.startswith(f"Kubernetes v{version}.")
    return found


@pytest.fixture
def scheduler(cluster: GpuCluster, program: Path) -> Iterator[ClusterPart]:
    """The kube-scheduler in place of the cluster's, with the installed configuration, leader election included."""
    made = cluster.maker.scheduler("other-scheduler", program, host="other")
    cluster.scheduler.stop()
    try:
        made.start()
        yield made
    finally:
        made.stop()
        cluster.scheduler.start()


def test_it_binds_a_pod_and_reports_why_another_waits(scheduler: ClusterPart, namespace: PodNamespace) -> None:
    for path in probe_paths():
        assert namespace.cluster.maker.answers(f"https://127.0.0.1:{SCHEDULER_PORT}{path}"), path
    namespace.create(pod("fits", gpu_mem=1024, gpu_cores=10))
    namespace.create(pod("waits", gpu_mem=TOO_MUCH_MIB))
    namespace.running("fits")
    (grant,) = namespace.assignment("fits").containers[ContainerName("main")]
    assert (grant.memory_mib, grant.cores) == (1024, 10)
    namespace.until(lambda: "CardTooSmall" in condition(namespace, "waits"), "the scheduler's reason")
    assert scheduler.process.running()


def probe_paths() -> set[str]:
    """Paths that the kubelet asks the installed kube-scheduler for."""
    deployment = next(yaml.safe_load_all(DEPLOYMENT.read_text()))
    containers = deployment["spec"]["template"]["spec"]["containers"]
    (scheduler,) = (container for container in containers if container["name"] == "scheduler")
    return {scheduler[probe]["httpGet"]["path"] for probe in ("livenessProbe", "readinessProbe")}


def condition(namespace: PodNamespace, name: str) -> str:
    """The message of the condition PodScheduled."""
    conditions = namespace.get(name)["status"].get("conditions", [])
    return " ".join(condition.get("message", "") for condition in conditions if condition["type"] == "PodScheduled")
