"""What made a job: the set above the controllers of its pods, read from the API server, and never a pod's own word."""

import asyncio
import json
from typing import Any

import msgspec
import pytest

from extender.gangs import bind_gate
from extender.gangs.job_owners import JobOwners
from extender.state.pod_reader import PodReader
from tests import strategies
from tests.extender.conftest import PODS, World
from tests.vgpu.node.builders import manifest
from vgpu.domain import names
from vgpu.domain.errors import KubernetesError
from vgpu.node.containers import bound_pod

JOBS = "/apis/batch/v1/namespaces/default/jobs"
STATEFUL_SETS = "/apis/apps/v1/namespaces/default/statefulsets"
JOB_SET = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "name": "train", "uid": "set-1"}
LEADER_WORKER_SET = {"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet", "name": "s", "uid": "l-1"}
MPI_JOB = {"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "name": "mpi", "uid": "mpi-1"}
CRON_JOB = {"apiVersion": "batch/v1", "kind": "CronJob", "name": "nightly", "uid": "cron-1"}
GANG = {names.GANG: "train", names.GANG_SIZE: "2"}
Reference = dict[str, Any]


@pytest.fixture(autouse=True)
def _short_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bind_gate, "WAIT_S", 0.05)


async def made(world: World, path: str, kind: str, name: str, *above: Reference) -> Reference:
    """Create an object that these own, and return the reference of what it makes."""
    metadata = {"name": name, "ownerReferences": [owner | {"controller": True} for owner in above]}
    created = json.loads(await world.client.post(path, {"metadata": metadata, "spec": {}}))
    uid = created["metadata"]["uid"]
    return {"apiVersion": created["apiVersion"], "kind": kind, "name": name, "uid": uid, "controller": True}


async def owner_of(world: World, reference: Reference, namespace: str = "default") -> str:
    pod = strategies.pod(strategies.container(gpu_mem=256), annotations=GANG)
    pod["metadata"] |= {"namespace": namespace, "ownerReferences": [reference]}
    return await JobOwners(world.client).of(PodReader().decoded(pod))


async def test_the_jobs_of_a_job_set_are_of_one_job(world: World) -> None:
    driver = await made(world, JOBS, "Job", "train-driver-0", JOB_SET)
    workers = await made(world, JOBS, "Job", "train-workers-0", JOB_SET)
    assert [await owner_of(world, driver), await owner_of(world, workers)] == ["set-1", "set-1"]


async def test_leaders_and_workers_of_a_leader_worker_set_are_of_one_job(world: World) -> None:
    """The set owns the leaders' StatefulSet, each leader the StatefulSet of its workers."""
    leaders = await made(world, STATEFUL_SETS, "StatefulSet", "s", LEADER_WORKER_SET)
    leader = await world.create_pod(metadata={"name": "s-0", "ownerReferences": [leaders]})
    above = {"apiVersion": "v1", "kind": "Pod", "name": "s-0", "uid": leader["metadata"]["uid"]}
    workers = await made(world, STATEFUL_SETS, "StatefulSet", "s-0", above)
    assert [await owner_of(world, leaders), await owner_of(world, workers)] == ["l-1", "l-1"]


async def test_launcher_and_workers_of_an_mpi_job_are_of_one_job(world: World) -> None:
    launcher = await made(world, JOBS, "Job", "mpi-launcher", MPI_JOB)
    assert await owner_of(world, launcher) == "mpi-1"
    assert await owner_of(world, MPI_JOB | {"controller": True}) == "mpi-1"  # it makes the workers itself


async def test_two_runs_of_a_cron_job_are_two_jobs(world: World) -> None:
    runs = [await made(world, JOBS, "Job", f"nightly-{n}", CRON_JOB) for n in range(2)]
    assert [await owner_of(world, run) for run in runs] == [run["uid"] for run in runs]


async def test_a_controller_that_does_not_exist_or_has_another_uid_leads_nowhere(world: World) -> None:
    """A pod may name any object: only what the object with this UID says counts, in the pod's own namespace."""
    job = await made(world, JOBS, "Job", "train-workers-0", JOB_SET)
    assert await owner_of(world, job | {"uid": "forged"}) == "forged"
    assert await owner_of(world, job | {"name": "another"}) == job["uid"]
    assert await owner_of(world, job, namespace="foreign") == job["uid"]
    assert await owner_of(world, {**JOB_SET, "controller": False}) == ""


async def test_an_owner_is_read_once_and_only_for_members_of_gangs(world: World, monkeypatch: Any) -> None:
    job = await made(world, JOBS, "Job", "train-workers-0", JOB_SET)
    reads: list[str] = []
    get = world.client.get

    async def counted(path: str, params: Any = None, *, timeout: float = 30) -> bytes:
        reads.append(path)
        return await get(path, params, timeout=timeout)

    monkeypatch.setattr(world.client, "get", counted)
    pod = strategies.pod(strategies.container(gpu_mem=256), annotations=GANG)
    pod["metadata"] |= {"namespace": "default", "ownerReferences": [job]}
    alone = strategies.pod(strategies.container(gpu_mem=256))
    alone["metadata"] |= {"namespace": "default", "ownerReferences": [job]}
    owners, reader = JobOwners(world.client), PodReader()
    assert await owners.of(reader.decoded(alone)) == ""
    found = await asyncio.gather(*(owners.of(reader.decoded(pod)) for _ in range(3)))
    assert [*found, await owners.of(reader.decoded(pod))] == ["set-1"] * 4
    assert reads == [f"{JOBS}/train-workers-0"]


async def test_without_the_right_to_read_jobs_the_pods_of_each_are_a_job(world: World, monkeypatch: Any) -> None:
    job = await made(world, JOBS, "Job", "train-workers-0", JOB_SET)

    async def forbidden(path: str, **_: Any) -> bytes:
        raise KubernetesError(403, "Forbidden", path)

    monkeypatch.setattr(world.client, "get", forbidden)
    assert await owner_of(world, job) == job["uid"]


async def placed(world: World, pods: list[dict[str, Any]]) -> list[str]:
    nodes = [(await world.filter(pod))["NodeNames"] for pod in pods]
    errors = await asyncio.gather(*(world.bind(pod, node[0]) for pod, node in zip(pods, nodes, strict=True)))
    assert errors == [""] * len(pods)
    shown = [msgspec.json.decode(await world.client.get(f"{PODS}/{pod['metadata']['name']}")) for pod in pods]
    return [pod["metadata"]["annotations"][names.PLACED_GANG] for pod in shown]


async def test_bindings_name_the_set_and_the_node_writes_one_job(world: World) -> None:
    controllers = [await made(world, JOBS, "Job", f"train-{part}-0", JOB_SET) for part in ("driver", "workers")]
    pods = [
        await world.create_pod(metadata={"annotations": GANG, "ownerReferences": [one]}, gpu=1) for one in controllers
    ]
    texts = await placed(world, pods)
    assert texts == ["annotation/train/set-1"] * 2
    jobs = {
        bound_pod.decode(json.dumps(manifest("p", annotations={names.PLACED_GANG: text}, owner=one)).encode()).job
        for text, one in zip(texts, controllers, strict=True)
    }
    assert len(jobs) == 1
    assert None not in jobs


async def test_no_member_is_bound_while_what_made_one_cannot_be_read(world: World, monkeypatch: Any) -> None:
    job = await made(world, JOBS, "Job", "train-workers-0", JOB_SET)
    pods = [await world.create_pod(metadata={"annotations": GANG, "ownerReferences": [job]}, gpu=1) for _ in range(2)]
    nodes = [(await world.filter(pod))["NodeNames"][0] for pod in pods]
    get = world.client.get

    async def silent(path: str, params: Any = None, *, timeout: float = 30) -> bytes:
        if path.startswith(JOBS):
            raise KubernetesError(0, "TimeoutError", path)
        return await get(path, params, timeout=timeout)

    with monkeypatch.context() as patched:
        patched.setattr(world.client, "get", silent)
        errors = await asyncio.gather(*(world.bind(pod, node) for pod, node in zip(pods, nodes, strict=True)))
    assert all("what made the pod could not be read" in error for error in errors)
    assert world.client.posts == 0
    assert await asyncio.gather(*(world.bind(pod, node) for pod, node in zip(pods, nodes, strict=True))) == [""] * 2
