"""Kueue's own manager holds Jobs back until its quota on what users ask for has room, and starts them then."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from cluster import images
from cluster.additions.kueue_manager import Kueue
from cluster.cluster import GpuCluster
from tests.e2e.pod_namespace import Document, PodNamespace, container, is_running, pod
from tests.manifests import examples
from vgpu.domain import names
from vgpu.domain.identifiers import ContainerName

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]  # Kueue is built by the first test

FOLDER = examples.FOLDER / "kueue"
QUEUE = "kueue.x-k8s.io/queue-name"
UNTIL_TOLD = ("sh", "-c", "until [ -e /tmp/end ]; do sleep 0.2; done")


def read(name: str) -> str:
    return (FOLDER / name).read_text()


@pytest.fixture(scope="module")
def kueue(cluster: GpuCluster) -> Iterator[Kueue]:
    """Kueue with the example's configuration."""
    made = Kueue(cluster, yaml.safe_load(read("configuration.yaml")))
    try:
        made.start()
        yield made
    finally:
        made.stop()


@pytest.fixture
def queue(kueue: Kueue, namespace: PodNamespace) -> Iterator[PodNamespace]:  # noqa: ARG001 - Kueue runs
    """A namespace with the example's queue; its quotas are its own, because Kueue frees those of deleted Jobs late."""
    manifest = yaml.safe_dump_all(own_quotas(examples.documents(FOLDER / "queues.yaml"), namespace.name))
    namespace.cluster.kubectl("apply", "-n", namespace.name, "-f", "-", stdin=manifest)
    yield namespace
    namespace.cluster.kubectl("delete", "jobs", "--all", "-n", namespace.name)


def own_quotas(documents: list[Document], name: str) -> list[Document]:
    """Rename the ClusterQueue."""
    for document in documents:
        if document["kind"] == "ClusterQueue":
            document["metadata"]["name"] = name
        elif document["kind"] == "LocalQueue":
            document["spec"]["clusterQueue"] = name
    return documents


def job(name: str, limits: Document | None = None) -> Document:
    """The example's Job with another name, a program that ends when it is told to, and other limits if given."""
    (made,) = examples.documents(Path(FOLDER / "job.yaml"))
    made["metadata"]["name"] = name
    spec = made["spec"]["template"]["spec"]
    (main,) = spec["containers"]
    main |= {"image": images.BASE, "command": list(UNTIL_TOLD)}
    main["resources"]["requests"] = {"cpu": "10m", "memory": "16Mi"}
    main["resources"]["limits"] = limits or main["resources"]["limits"]
    spec["terminationGracePeriodSeconds"] = 1
    return dict(made)


def create(queue: PodNamespace, made: Document) -> None:
    queue.cluster.api.create(f"/apis/batch/v1/namespaces/{queue.name}/jobs", made)


def pod_of(queue: PodNamespace, name: str) -> str:
    """Wait for the pod of a Job to run, and return its name."""

    def check() -> str | None:
        pods = [pod for pod in queue.all() if pod["metadata"].get("labels", {}).get("job-name") == name]
        return next((str(pod["metadata"]["name"]) for pod in pods if is_running(pod)), None)

    return queue.until(check, f"the pod of Job {name} runs")


def workload(queue: PodNamespace, owner: str) -> Document | None:
    """Return Kueue's record of a Job or of a pod."""
    path = f"/apis/kueue.x-k8s.io/v1beta2/namespaces/{queue.name}/workloads"
    items = queue.cluster.api.get(path)["items"]
    return next((item for item in items if item["metadata"]["ownerReferences"][0]["name"] == owner), None)


def counted(queue: PodNamespace, owner: str) -> Document:
    """Wait for Kueue to admit a Job or a pod; return what counts of it against the quota, without CPU and memory."""

    def check() -> Document | None:
        admission = ((workload(queue, owner) or {}).get("status") or {}).get("admission")
        return dict(admission["podSetAssignments"][0]["resourceUsage"]) if admission else None

    found = queue.until(check, f"{owner} is admitted")
    return {name: amount for name, amount in found.items() if name not in ("cpu", "memory")}


def waiting(queue: PodNamespace, owner: str) -> str:
    """Wait for Kueue to say why it holds a Job back, and return the message."""

    def check() -> str | None:
        conditions = ((workload(queue, owner) or {}).get("status") or {}).get("conditions", [])
        refused = [
            condition
            for condition in conditions
            if condition["type"] == "QuotaReserved" and condition["status"] == "False"
        ]
        return str(refused[0]["message"]) if refused else None

    return queue.until(check, f"{owner} is held back")


def test_a_job_waits_for_the_quota_and_starts_when_another_one_ends(queue: PodNamespace) -> None:
    create(queue, job("first"))
    running = pod_of(queue, "first")
    create(queue, job("second"))
    message = waiting(queue, "second")
    assert "insufficient unused quota for vgpu.io/gpu-mem in flavor shared-gpus, 8192 more needed" in message
    assert message in queue.cluster.kubectl("describe", "workloads", "-n", queue.name)
    assert "Suspended" in queue.cluster.kubectl("get", "job", "second", "-n", queue.name)
    assert len(queue.all()) == 1, "a Job that is held back has no pods"
    queue.run(running, "touch", "/tmp/end")
    held = pod_of(queue, "second")
    assert queue.assignment(held).containers[ContainerName("main")][0].memory_mib == 12288
    assert counted(queue, "second") == {names.GPU_MEM: "12288", names.GPU_CORES: "50"}


def test_a_job_of_foreign_names_counts_against_the_same_quota(queue: PodNamespace) -> None:
    create(queue, job("hami", {"nvidia.com/gpu": 1, "nvidia.com/gpumem": 2048, "nvidia.com/gpucores": 10}))
    assert counted(queue, "hami") == {names.GPU_MEM: "2048", names.GPU_CORES: "10", names.GPU: "1"}
    create(queue, job("percent", {names.GPU_MEM_PERCENTAGE: 5}))
    assert counted(queue, "percent") == {names.GPU_MEM: "4096"}
    pod_of(queue, "hami")
    pod_of(queue, "percent")


def test_a_pod_counts_as_its_user_wrote_it_though_kueue_sees_what_the_webhook_added(queue: PodNamespace) -> None:
    made = pod("alone", container(gpu_mem=8192, limits={"cpu": "10m", "memory": "16Mi"}))
    made["metadata"]["labels"] = {QUEUE: "gpus"}
    queue.create(made)
    (running,) = queue.running("alone")
    assert names.SLICE in running["spec"]["containers"][0]["resources"]["limits"]
    assert counted(queue, "alone") == {names.GPU_MEM: "8192"}
