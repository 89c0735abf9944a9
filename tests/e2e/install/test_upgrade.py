"""From release 0.1.0 to this checkout and back, with GPU pods that run: images of both, and `kubectl apply -k`."""

import dataclasses
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from cluster.pod_cluster import PodCluster
from cluster.programs import binaries
from images import oci, parts
from tests.e2e.install.pod_clusters import make_with_logs
from tests.e2e.install.test_images import PARTS
from tests.e2e.limits.test_limits import OUT_OF_MEMORY, assert_total_memory, results
from tests.e2e.made_cluster import RUNTIME
from tests.e2e.pod_namespace import PodNamespace, container, pod
from vgpu.domain import names

pytestmark = [pytest.mark.e2e, pytest.mark.images, pytest.mark.timeout(900, func_only=True)]

RELEASE: Final = "b3ce806a225ecf34bc0f0171e68af4f4dbfd143e"
TAG: Final = "0.1.0-released"
HOLDS: Final = ("sh", "-c", "gpuprobe alloc 4096 --hold 0; exit 1")  # the shell is process 1, which no kill -1 ends


class UpgradeCluster(PodCluster):
    """A cluster whose nodes also have the images of a released checkout."""

    def __init__(self, released: Path) -> None:
        self._released = released
        super().__init__(cards=2, runtime=RUNTIME)

    def archives(self) -> list[Path]:
        """Write the images that every node imports."""
        archive = self.work / "released.tar"
        with tempfile.TemporaryDirectory(dir=self.work) as scratch:
            made = self.built(self._released, Path(scratch))
            tagged = [
                dataclasses.replace(image, reference=f"{image.reference.rpartition(':')[0]}:{TAG}") for image in made
            ]
            oci.write(tagged, archive)
        return [*super().archives(), archive]


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout of release 0.1.0, with an overlay that names its images."""
    folder = tmp_path_factory.mktemp("released")
    archived = subprocess.run(["git", "-C", binaries.REPOSITORY, "archive", RELEASE], capture_output=True, check=False)
    if archived.returncode:
        pytest.skip("the history of this clone does not have release 0.1.0")
    subprocess.run(["tar", "-x", "-C", folder], input=archived.stdout, check=True)
    _lay_out_requirements(folder)
    overlay = folder / "manifests" / "overlays" / "released"
    overlay.mkdir()
    images = "".join(f"  - {{name: vgpushare-{part}, newTag: {TAG}}}\n" for part in PARTS)
    (overlay / "kustomization.yaml").write_text(f"resources: [../../base]\nimages:\n{images}")
    return folder


def _lay_out_requirements(released: Path) -> None:
    """Write the one file of requirements of release 0.1.0 for each of the files that images are built from now."""
    folder = released / "requirements"
    folder.mkdir()
    for name in {part.requirements for part in parts.PARTS}:
        shutil.copy(released / "requirements.lock", folder / name)


@pytest.fixture(scope="module")
def pods(pytestconfig: pytest.Config, released: Path) -> Iterator[UpgradeCluster]:
    with make_with_logs(pytestconfig, "upgrade", lambda: UpgradeCluster(released)) as made:
        yield made


def test_running_pods_are_unharmed_by_upgrade_and_rollback(pods: UpgradeCluster, released: Path) -> None:
    """One test: its steps build on each other."""
    overlay = released / "manifests" / "overlays" / "released"
    pods.install(overlay)
    namespace = PodNamespace(pods, "users")  # type: ignore[arg-type] # it needs no process of the harness
    uuids = [node.cards[0].uuid for node in pods.nodes]
    for name, uuid in zip(("first", "second"), uuids, strict=True):
        namespace.create(holder(name, uuid))
    namespace.running("first", "second")
    before = container_ids(namespace)
    pods.install()
    assert container_ids(namespace) == before
    for name in ("first", "second"):
        assert_limit(namespace, name, 8192, free=4000)
    assert_accounted(namespace, uuids[0])
    restart_in_place(namespace, "second")
    assert_limit(namespace, "second", 8192, free=4000)
    create_admitted(namespace, holder("third", uuids[1]))
    namespace.running("third")
    before = container_ids(namespace)
    pods.install(overlay)
    assert container_ids(namespace) == before
    for name in before:
        assert_limit(namespace, name, 8192, free=4000)
    # No new pod is placed now: the kube-scheduler of 0.1.0 may not take over a Lease (manifests/README.md).


def holder(name: str, uuid: str) -> dict[str, object]:
    """A pod whose program holds 4 GiB of its 8 GiB on one card."""
    return pod(name, container(command=HOLDS, gpu_mem=8192, gpu_cores=30), annotations={names.USE_GPU_UUID: uuid})


def container_ids(namespace: PodNamespace) -> dict[str, str]:
    return {item["metadata"]["name"]: item["status"]["containerStatuses"][0]["containerID"] for item in namespace.all()}


def assert_limit(namespace: PodNamespace, name: str, mib: int, free: int) -> None:
    assert_total_memory(namespace, name, mib)
    assert results(namespace.probe(name, "alloc", str(free), "200")) == [0, OUT_OF_MEMORY]


def create_admitted(namespace: PodNamespace, manifest: dict[str, object]) -> None:
    """Create a pod; again where the API server's connection to a webhook that was replaced broke off.

    The API server lets such a pod in as it is, and `vgpu readmit` creates it again (manifests/README.md).
    """

    def is_admitted() -> bool:
        made = namespace.create(manifest)
        if made["spec"]["schedulerName"] == names.SCHEDULER:
            return True
        namespace.delete(made["metadata"]["name"])
        return False

    namespace.until(is_admitted, "a pod is admitted")


def assert_accounted(namespace: PodNamespace, uuid: str) -> None:
    """The new extender counts what the old one has given: 8 GiB of the card's 80 GiB."""
    fits = pod("fits", annotations={names.USE_GPU_UUID: uuid}, gpu_mem=72 << 10)
    waits = pod("waits", annotations={names.USE_GPU_UUID: uuid}, gpu_mem=256)
    create_admitted(namespace, fits)
    namespace.running("fits")
    create_admitted(namespace, waits)
    namespace.until(
        lambda: any("CardInsufficientMemory" in event["message"] for event in namespace.events("waits")), "a reason"
    )
    namespace.delete("fits", "waits")


def restart_in_place(namespace: PodNamespace, name: str) -> None:
    """Kill a container's programs; the kubelet starts it again with the devices and mounts of its first start."""
    before = namespace.get(name)["status"]["containerStatuses"][0]["restartCount"]
    namespace.cluster.kubectl(
        "exec", "-n", namespace.name, name, "--", "sh", "-c", f"kill -{signal.SIGKILL} -1", check=False
    )
    namespace.until(
        lambda: namespace.get(name)["status"]["containerStatuses"][0]["restartCount"] > before, f"{name} starts again"
    )
    namespace.running(name)
