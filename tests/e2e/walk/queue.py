"""A queue of Kueue with a quota of our resources: its objects, what the walk puts into it, and what must be true of it.

Kueue admits a Job or a pod when its quota has room for what its user wrote. The truth is what the API server has of
Jobs and pods: those that are admitted count, no more than the quota is admitted, and nothing is held back that fits.
"""

import random
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final

from tests.e2e import churn
from tests.e2e.monitor.findings import Finding
from tests.e2e.monitor.snapshot import Snapshot
from tests.e2e.pod_namespace import container
from tests.e2e.walk.plan import QUEUED
from tests.e2e.walk.walk_cluster import WalkCluster
from vgpu.domain import names, quantity

NAME: Final = "walk"
LABELS: Final = {"kueue.x-k8s.io/queue-name": NAME}
QUOTAS: Final = {names.GPU_MEM: 96 * 1024, names.GPU_CORES: 150, names.GPU: 3}
_OTHER_QUOTAS: Final = {"cpu": 64, "memory": "256Gi"}
_API: Final = "kueue.x-k8s.io/v1beta2"
_QUEUES: Final = f"/apis/{_API}"
_JOB: Final = "job-name"  # a label of a Job's pods

Json = dict[str, Any]
Amounts = Counter[str]


def objects() -> Iterator[tuple[str, Json]]:
    """Yield the path and the manifest of each object of the queue, in the order in which they are created."""
    quotas = [{"name": name, "nominalQuota": str(amount)} for name, amount in (_OTHER_QUOTAS | QUOTAS).items()]
    groups = [{"coveredResources": [*_OTHER_QUOTAS, *QUOTAS], "flavors": [{"name": NAME, "resources": quotas}]}]
    yield f"{_QUEUES}/resourceflavors", _object("ResourceFlavor", {})
    yield f"{_QUEUES}/clusterqueues", _object("ClusterQueue", {"namespaceSelector": {}, "resourceGroups": groups})
    yield f"{_QUEUES}/namespaces/{QUEUED}/localqueues", _object("LocalQueue", {"clusterQueue": NAME})


def _object(kind: str, spec: Json) -> Json:
    return {"apiVersion": _API, "kind": kind, "metadata": {"name": NAME}, "spec": spec}


def limits(chance: random.Random) -> dict[str, str]:
    """Draw what a container asks for: a share, with or without time, of one card or two; or a whole card."""
    mib = chance.choice((1024, 8192, 20480))
    return chance.choice(
        (
            {names.GPU_MEM: str(mib)},
            {names.GPU_MEM: str(mib), names.GPU_CORES: str(chance.randint(1, 60))},
            {names.GPU_MEM: str(2 * mib), names.GPU: "2"},
            {names.GPU: "1"},
        )
    )


def job(name: str, size: int, limits: Mapping[str, str], *, ends: bool) -> Json:
    """Return a Job of `size` pods."""
    main = container(command=("sleep", "1"), limits=limits) if ends else container(limits=limits) | churn.PAUSE
    template = {"spec": {"restartPolicy": "Never", "terminationGracePeriodSeconds": 1, "containers": [main]}}
    spec = {"parallelism": size, "completions": size, "suspend": True, "template": template}
    return {"metadata": {"name": name, "labels": dict(LABELS)}, "spec": spec}


def differences(cluster: WalkCluster, seen: Snapshot) -> Iterator[Finding]:
    """Yield a finding for each thing about the queue that is not as the Jobs and pods are."""
    jobs = cluster.api.get(f"/apis/batch/v1/namespaces/{QUEUED}/jobs")["items"]
    pods = [pod for pod in seen.pods if pod["metadata"]["namespace"] == QUEUED]
    status = cluster.api.get(f"{_QUEUES}/clusterqueues/{NAME}").get("status", {})
    yield from compared(jobs, pods, status)


def compared(jobs: list[Json], pods: list[Json], status: Json) -> Iterator[Finding]:
    """Yield what is wrong, by the Jobs and pods of the namespace and the status of the ClusterQueue."""
    alone = [pod for pod in pods if _JOB not in pod["metadata"].get("labels", {})]
    amounts = {_name(item): _asked(item) for item in (*jobs, *alone) if not _has_ended(item)}
    held = {_name(item) for item in (*jobs, *alone) if is_held(item)}
    used = sum((asked for name, asked in amounts.items() if name not in held), Amounts())
    for field in ("flavorsReservation", "flavorsUsage"):
        counted = _counted(status.get(field, []))
        if any(counted[name] != used[name] for name in QUOTAS):
            yield Finding(f"Kueue's {field} is not what it has admitted", f"{dict(counted)}, by hand {dict(used)}")
    for name in (name for name, quota in QUOTAS.items() if used[name] > quota):
        yield Finding("Kueue has admitted more than its quota", f"{used[name]} of {name}")
    for name in held & amounts.keys():
        if all(used[resource] + amounts[name][resource] <= quota for resource, quota in QUOTAS.items()):
            yield Finding("Kueue holds back what its quota has room for", f"{name}: {dict(amounts[name])}", name)
    for pod in pods:
        owner = pod["metadata"].get("labels", {}).get(_JOB)
        if pod["spec"].get("nodeName") and (is_held(pod) or (owner and f"Job {owner}" in held and _runs(pod))):
            yield Finding("a pod runs that Kueue holds back", _name(pod), _name(pod))


def is_held(item: Json) -> bool:
    """Whether Kueue holds a Job or a pod back."""
    return bool(item["spec"].get("suspend") or item["spec"].get("schedulingGates"))


def _runs(pod: Json) -> bool:
    return "deletionTimestamp" not in pod["metadata"] and pod["status"].get("phase") == "Running"


def _has_ended(item: Json) -> bool:
    """Whether a Job or a pod has ended, or is being deleted."""
    status = item.get("status", {})
    ends = {entry["type"] for entry in status.get("conditions", []) if entry["status"] == "True"}
    is_over = bool(ends & {"Complete", "Failed"}) or status.get("phase") in ("Succeeded", "Failed")
    return is_over or "deletionTimestamp" in item["metadata"]


def _asked(item: Json) -> Amounts:
    """Return what a Job's pods, or a pod, ask for together. What pods that have succeeded asked for is free again."""
    template, pods = item["spec"].get("template", item), item["spec"].get("parallelism", 1)
    left = item["spec"].get("completions", pods) - item.get("status", {}).get("succeeded", 0)
    asked = Amounts()
    for entry in template["spec"]["containers"]:
        for name in QUOTAS:
            asked[name] += int(entry["resources"]["limits"].get(name, 0)) * min(pods, left)
    return asked


def _counted(flavors: list[Json]) -> Amounts:
    found = Amounts()
    for entry in (entry for flavor in flavors for entry in flavor["resources"] if entry["name"] in QUOTAS):
        found[entry["name"]] += quantity.whole_number(str(entry["total"])) or 0
    return found


def _name(item: Json) -> str:
    kind = "Job" if "template" in item["spec"] else "pod"
    return f"{kind} {item['metadata']['name']}"
