"""Idle cards come back, in real time: only pods without kernels are acted on, warned first, and back as they were."""

import json
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from typing import Any

import pytest

from cluster import api, command_line, wait
from cluster.cluster import GpuCluster
from tests.e2e.control_plane.test_rights import client_of
from tests.e2e.node.test_node_files import at
from tests.e2e.pod_namespace import PodNamespace, container, is_running, pod
from vgpu.domain import names

pytestmark = pytest.mark.e2e

Json = dict[str, Any]
AFTER_S = 60
GRACE_S = 15
PERIOD_S = 5  # between two reports of a node, the least that is allowed
HOLDS = ("gpuprobe", "alloc", "100", "--hold", "0")  # memory, and no kernel: a notebook
SPINS = ("gpuprobe", "spin", "500")
WAITS_FOR_DATA = ("sh", "-c", "while true; do timeout 2 gpuprobe spin 500; sleep 40; done")
NOTEBOOKS_CRD: Json = {
    "metadata": {"name": "notebooks.kubeflow.org"},
    "spec": {
        "group": "kubeflow.org",
        "scope": "Namespaced",
        "names": {"plural": "notebooks", "singular": "notebook", "kind": "Notebook", "listKind": "NotebookList"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
SIZES = f"/api/v1/namespaces/{names.NAMESPACE}/configmaps/vgpu-idle"


def asks(action: str) -> dict[str, str]:
    return {names.IDLE_AFTER: f"{AFTER_S}s", names.IDLE_ACTION: action}


class Owners:
    """The namespace's workloads: each pod holds 1 GiB of the first card of the first node."""

    def __init__(self, namespace: PodNamespace) -> None:
        self.namespace = namespace
        self._api = namespace.cluster.api

    @property
    def card(self) -> dict[str, str]:
        return at(self.namespace.cluster.nodes[0])

    def pod(self, name: str, action: str, command: tuple[str, ...] = HOLDS, **labels: str) -> None:
        made = pod(name, container(command=command, gpu_mem=1024), annotations={**asks(action), **self.card})
        made["metadata"]["labels"] = labels
        self.namespace.create(made)

    def path(self, plural: str, name: str = "") -> str:
        group = "kubeflow.org/v1" if plural == "notebooks" else "apps/v1"
        return f"/apis/{group}/namespaces/{self.namespace.name}/{plural}{f'/{name}' if name else ''}"

    def workload(self, plural: str, name: str, action: str, replicas: int, **metadata: Any) -> None:
        made = pod("", container(command=HOLDS, gpu_mem=1024), annotations={**asks(action), **self.card})
        template = {"metadata": {**made["metadata"], "labels": {"app": name}}, "spec": made["spec"]}
        del template["metadata"]["name"]
        spec = {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template}
        more = {"serviceName": name} if plural == "statefulsets" else {}
        self._api.create(self.path(plural), {"metadata": {"name": name, **metadata}, "spec": spec | more})

    def replicas(self, plural: str, name: str) -> int:
        return int(self._api.get(self.path(plural, name))["spec"]["replicas"])

    def pods_of(self, name: str) -> list[Json]:
        return [pod for pod in self.namespace.all() if pod["metadata"].get("labels", {}).get("app") == name]


@pytest.fixture
def notebooks(namespace: PodNamespace) -> Iterator[Owners]:
    """The namespace's workloads, in a cluster that knows Kubeflow's Notebooks."""
    cluster, made = namespace.cluster, Owners(namespace)
    cluster.api.create(CRDS, NOTEBOOKS_CRD)
    try:
        wait.until(lambda: cluster.api.find(made.path("notebooks")), "Notebooks are served", 30)
        yield made
    finally:
        cluster.api.delete(f"{CRDS}/notebooks.kubeflow.org")
        wait.until(lambda: cluster.api.find(f"{CRDS}/notebooks.kubeflow.org") is None, "no Notebooks", 60)


@pytest.fixture
def owners(notebooks: Owners) -> Iterator[Owners]:
    """Nodes that report every five seconds, and an extender with a short grace time."""
    namespace, cluster = notebooks.namespace, notebooks.namespace.cluster
    try:
        for plugin in cluster.plugins:
            plugin.restart(f"--usage-period={PERIOD_S}")
        with cluster.extender_with(idle_grace=str(GRACE_S)):
            wait.until(lambda: nodes_are_usable(cluster), "the extender has seen the device plugins", 60)
            yield notebooks
    finally:
        cluster.api.delete(notebooks.path("statefulsets"))
        cluster.api.delete(f"{namespace.path.replace('/api/v1', '/apis/policy/v1')}/poddisruptionbudgets")
        for plugin in cluster.plugins:
            plugin.restart()


def nodes_are_usable(cluster: GpuCluster) -> bool:
    with suppress(AssertionError):  # the extender has just been started
        return all(item["usable"] for item in command_line.read(cluster, "admin", "get", "nodes")["items"])
    return False


def notebook(owners: Owners) -> None:
    """A Notebook with the StatefulSet that its controller would make."""
    made = owners.namespace.cluster.api.create(
        owners.path("notebooks"),
        {
            "apiVersion": "kubeflow.org/v1",
            "kind": "Notebook",
            "metadata": {"name": "jupyter"},
            "spec": {"template": {}},
        },
    )
    owner = {"apiVersion": "kubeflow.org/v1", "kind": "Notebook", "name": "jupyter", "uid": made["metadata"]["uid"]}
    owners.workload("statefulsets", "jupyter", "cull", 1, ownerReferences=[{**owner, "controller": True}])


def budget(namespace: PodNamespace) -> None:
    path = f"{namespace.path.replace('/api/v1', '/apis/policy/v1')}/poddisruptionbudgets"
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"guarded": "yes"}}}
    namespace.cluster.api.create(path, {"metadata": {"name": "guarded"}, "spec": spec})


def is_warned(namespace: PodNamespace, name: str) -> bool:
    conditions = namespace.get(name)["status"].get("conditions", [])
    return any(condition["type"] == names.IDLE_CONDITION and condition["status"] == "True" for condition in conditions)


def reasons(namespace: PodNamespace, name: str) -> set[str]:
    return {event["reason"] for event in namespace.extender_events(name)}


def listed(namespace: PodNamespace) -> dict[str, Json]:
    pods = command_line.read(namespace.cluster, "admin", "get", "pods", "-n", namespace.name)
    return {item["name"]: item for item in pods["items"]}


@pytest.mark.timeout(420)
def test_only_idle_pods_are_acted_on_warned_first_and_back_as_they_were(owners: Owners) -> None:
    namespace, cluster = owners.namespace, owners.namespace.cluster
    budget(namespace)
    owners.pod("notebook", "evict")
    owners.pod("used-again", "evict")
    owners.pod("reported", "report")
    owners.pod("guarded", "evict", guarded="yes")
    owners.pod("busy", "evict", SPINS)
    owners.pod("waits", "evict", WAITS_FOR_DATA)
    owners.workload("deployments", "batch", "scale-to-zero", 2)
    owners.workload("statefulsets", "stateful", "scale-to-zero", 1)
    notebook(owners)
    namespace.running("notebook", "used-again", "reported", "guarded", "busy", "waits", within_s=120)
    began = started(namespace, "notebook")
    namespace.until(
        lambda: len(owners.pods_of("batch")) == 2 and all(map(is_running, owners.pods_of("batch"))), "batch runs"
    )
    namespace.until(lambda: [is_running(pod) for pod in owners.pods_of("stateful")] == [True], "stateful runs")
    before = {pod["metadata"]["name"]: pod["spec"]["containers"] for pod in owners.pods_of("stateful")}
    time.sleep(25)
    cluster.extender.restart(f"--idle-grace={GRACE_S}")  # the idle time survives it
    namespace.until(lambda: is_warned(namespace, "notebook"), "the notebook is warned", AFTER_S + 20)
    warned_after = time.time() - began
    assert AFTER_S <= warned_after <= AFTER_S + wait.allowed(40), warned_after
    namespace.until(lambda: "no kernel of this pod" in notice(namespace, "used-again"), "the notice", 15)
    namespace.run("used-again", "sh", "-c", "timeout 2 gpuprobe spin 500 || true")
    namespace.until(lambda: not is_warned(namespace, "used-again"), "the warning is taken back", 15)
    namespace.until(lambda: notice(namespace, "used-again") == "", "the notice is removed", 10)
    namespace.until(lambda: "notebook" not in namespace.phases(), "the notebook is evicted", GRACE_S + 20)
    assert time.time() - began >= AFTER_S + GRACE_S
    assert {"IdleWarning", "IdleEvicted"} <= reasons(namespace, "notebook")
    namespace.until(lambda: owners.replicas("deployments", "batch") == 0, "the Deployment is scaled", 30)
    namespace.until(lambda: owners.replicas("statefulsets", "stateful") == 0, "the StatefulSet is scaled", 30)
    namespace.until(lambda: stopped(owners), "the Notebook is stopped", 30)
    namespace.until(lambda: not owners.pods_of("batch") and not owners.pods_of("stateful"), "their pods are gone", 30)
    namespace.until(lambda: "IdleActionFailed" in reasons(namespace, "guarded"), "the budget is kept", 30)
    assert owners.replicas("statefulsets", "jupyter") == 1
    assert {"used-again", "reported", "guarded", "busy", "waits"} <= namespace.phases().keys()
    assert reasons(namespace, "busy") == reasons(namespace, "waits") == set()
    assert reasons(namespace, "reported") == {"Idle"}
    rows = listed(namespace)
    assert rows["reported"]["idleSeconds"] >= AFTER_S
    assert rows["busy"]["idleSeconds"] <= PERIOD_S
    assert rows["waits"]["idleSeconds"] < AFTER_S
    come_back(owners, before)


def started(namespace: PodNamespace, name: str) -> float:
    """Return when a pod's container started, in seconds since 1970."""
    (status,) = namespace.get(name)["status"]["containerStatuses"]
    return datetime.fromisoformat(status["state"]["running"]["startedAt"]).timestamp()


def notice(namespace: PodNamespace, name: str) -> str:
    return namespace.run(name, "sh", "-c", "cat /run/vgpu/notices/idle 2>/dev/null || true")


def stopped(owners: Owners) -> bool:
    found = owners.namespace.cluster.api.get(owners.path("notebooks", "jupyter"))
    return "kubeflow-resource-stopped" in found["metadata"].get("annotations", {})


def come_back(owners: Owners, before: dict[str, Any]) -> None:
    """By the commands that the Events contain."""
    namespace = owners.namespace
    for plural, name, replicas in (("deployments", "batch", 2), ("statefulsets", "stateful", 1)):
        (event,) = [event for event in namespace.extender_events(name) if event["reason"] == "IdleScaledToZero"]
        command = event["message"].partition("back by: kubectl ")[2].split()
        namespace.cluster.kubectl(*command)
        assert owners.replicas(plural, name) == replicas
    kept = namespace.cluster.api.get(SIZES)["data"]
    assert json.loads(kept[f"Deployment.{namespace.name}.batch"])["replicas"] == 2
    namespace.until(
        lambda: all(map(is_running, owners.pods_of("batch"))) and len(owners.pods_of("batch")) == 2, "batch is back"
    )
    namespace.until(lambda: [is_running(pod) for pod in owners.pods_of("stateful")] == [True], "stateful is back")
    after = {pod["metadata"]["name"]: pod["spec"]["containers"] for pod in owners.pods_of("stateful")}
    assert [container["resources"] for container in after["stateful-0"]] == [
        container["resources"] for container in before["stateful-0"]
    ]


def test_a_namespaces_default_that_cannot_be_read_is_refused(cluster: GpuCluster, namespace: PodNamespace) -> None:
    with pytest.raises(api.RequestRefused, match=r"idle-after.* must be a time from 1m to 720h"):
        cluster.api.patch(namespace.path, {"metadata": {"annotations": {names.IDLE_AFTER: "soon"}}})
    with pytest.raises(api.RequestRefused, match="must be one of report, evict, scale-to-zero, cull"):
        cluster.api.patch(namespace.path, {"metadata": {"annotations": {names.IDLE_ACTION: "kill"}}})
    cluster.api.patch(namespace.path, {"metadata": {"annotations": asks("evict")}})
    assert "must be one of report" in namespace.refused(pod("p", annotations={names.IDLE_ACTION: "kill"}, gpu_mem=256))


def test_a_running_pod_may_opt_out_and_other_annotations_stay(namespace: PodNamespace) -> None:
    namespace.create(pod("p", annotations=asks("evict"), gpu_mem=256))
    namespace.running("p")
    patch = namespace.cluster.api.patch
    patch(f"{namespace.pods_path}/p", {"metadata": {"annotations": {names.IDLE_AFTER: "never"}}})
    with pytest.raises(api.RequestRefused, match="must be a time from 1m to 720h"):
        patch(f"{namespace.pods_path}/p", {"metadata": {"annotations": {names.IDLE_AFTER: "x"}}})


def test_the_extenders_account_may_only_stop_notebooks(notebooks: Owners) -> None:
    notebooks.namespace.cluster.api.create(
        notebooks.path("notebooks"),
        {"apiVersion": "kubeflow.org/v1", "kind": "Notebook", "metadata": {"name": "nb"}, "spec": {"image": "a"}},
    )
    extender, path = client_of(notebooks.namespace.cluster, "vgpu-extender"), notebooks.path("notebooks", "nb")
    with pytest.raises(api.RequestRefused, match="no field of a Notebook"):
        extender.patch(path, {"spec": {"image": "b"}})
    with pytest.raises(api.RequestRefused, match="no annotation of a Notebook"):
        extender.patch(path, {"metadata": {"annotations": {"other": "x"}}})
    extender.patch(path, {"metadata": {"annotations": {"kubeflow-resource-stopped": "2026-01-01T00:00:00Z"}}})
    notebooks.workload("deployments", "batch", "report", 0)
    with pytest.raises(api.RequestRefused, match="forbidden"):
        extender.patch(notebooks.path("deployments", "batch"), {"spec": {"paused": True}})
    with pytest.raises(api.RequestRefused, match="forbidden"):
        extender.patch(
            f"/api/v1/namespaces/{notebooks.namespace.name}/configmaps/kube-root-ca.crt", {"data": {"a": "b"}}
        )
    extender.close()
