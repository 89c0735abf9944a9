"""A JobSet's Jobs are controllers of their own, and their pods are of one job: on a real API server and Job controller.

The JobSet's own controller is not installed: the test makes the two Jobs with the owner references that it would write.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cluster.cluster import GpuCluster
from tests.e2e.pod_namespace import PodNamespace, is_running, pod
from vgpu.domain import names

pytestmark = pytest.mark.e2e

CRD = Path(__file__).parent / "job_set_crd.yaml"
GIB = 1024
STARTED_S = 60.0
Document = dict[str, Any]


@pytest.fixture(autouse=True, scope="module")
def job_sets(cluster: GpuCluster) -> Iterator[None]:
    cluster.kubectl("apply", "-f", str(CRD))
    cluster.kubectl("wait", "--for=condition=Established", "--timeout=60s", "-f", str(CRD))
    yield
    cluster.kubectl("delete", "-f", str(CRD))


def create_job(namespace: PodNamespace, name: str, owner: Document) -> Document:
    gang = {names.GANG: "train", names.GANG_SIZE: "2", names.GANG_CARDS: "own", names.NODE_POLICY: "topology"}
    template = pod(name, annotations=gang, gpu_mem=GIB, gpu_cores=20)
    spec = template["spec"] | {"restartPolicy": "Never"}
    reference = {key: owner[key] for key in ("apiVersion", "kind")}
    reference |= {key: owner["metadata"][key] for key in ("name", "uid")} | {"controller": True}
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "ownerReferences": [reference]},
        "spec": {"template": {"metadata": {"annotations": gang}, "spec": spec}},
    }
    made: Document = namespace.cluster.api.create(f"/apis/batch/v1/namespaces/{namespace.name}/jobs", job)
    return made


def test_the_pods_of_the_jobs_of_a_job_set_are_bound_as_one_job(namespace: PodNamespace) -> None:
    path = f"/apis/jobset.x-k8s.io/v1alpha2/namespaces/{namespace.name}/jobsets"
    document = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": "train"}, "spec": {}}
    owner: Document = namespace.cluster.api.create(path, document)
    jobs = [create_job(namespace, f"train-{part}-0", owner) for part in ("driver", "workers")]
    running = namespace.until(
        lambda: found if len(found := [one for one in namespace.all() if is_running(one)]) == len(jobs) else None,
        "both pods run",
        STARTED_S,
    )
    controllers = {reference["uid"] for one in running for reference in one["metadata"]["ownerReferences"]}
    assert controllers == {job["metadata"]["uid"] for job in jobs}
    placed = {one["metadata"]["annotations"][names.PLACED_GANG] for one in running}
    assert placed == {f"annotation/train/{owner['metadata']['uid']}"}
    cards = [namespace.assignment(one["metadata"]["name"]).gpus() for one in running]
    assert not cards[0] & cards[1]
