"""Pods as other programs create and delete them, with a share of a card added as docs/other-tools.md says.

The programs do not run here: their pods are built as their sources do, with our images, and without their volumes.
"""

import json
from functools import partial
from typing import Final

import pytest

from tests.e2e.limits.test_limits import assert_total_memory
from tests.e2e.pod_namespace import FOREVER, Document, PodNamespace, container, pod
from vgpu.domain import names

pytestmark = pytest.mark.e2e

SHARE: Final = {names.GPU_MEM: "1024", names.GPU_CORES: "10"}


def forever(name: str, **more: object) -> Document:
    return {**container(name, FOREVER), **more}


def github_job(namespace: PodNamespace, *, uses_scheduler: bool) -> Document:
    """`createPod` of actions/runner-container-hooks (packages/k8s/src/k8s/index.ts), with a share by a hook template.

    Without ACTIONS_RUNNER_USE_KUBE_SCHEDULER=true the pod is bound to the runner's node by its manifest.
    """
    node = namespace.cluster.nodes[0].name
    job = container("job", ("tail", "-f", "/dev/null"), limits=SHARE)
    made = pod("runner-abcde-workflow", job, forever("redis"))
    made["metadata"]["labels"] = {"runner-pod": "runner-abcde"}
    made["spec"] |= {"restartPolicy": "Never", "volumes": [{"name": "work", "emptyDir": {}}]}
    if not uses_scheduler:
        return {**made, "spec": {**made["spec"], "nodeName": node}}
    here = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}]}
    wanted = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [here]}}
    made["spec"]["affinity"] = {"nodeAffinity": wanted}
    return made


def gitlab_job() -> Document:
    """The Kubernetes executor's pod, with a `pod_spec` patch that adds a share to the container `build`.

    Before release 17.0 an unset grace period is 0.
    """
    init = container("init-permissions", ("true",))
    build, helper, service = container("build", FOREVER, limits=SHARE), forever("helper"), forever("svc-0")
    made = pod("runner-t1-project-1-concurrent-0-x", build, helper, service, init=[init])
    made["spec"] |= {"restartPolicy": "Never", "terminationGracePeriodSeconds": 0}
    return made


def jupyterhub_server(mib: int = 1024) -> Document:
    """kubespawner's pod: `extra_resource_limits` and `extra_resource_guarantees` are both set."""
    notebook = container("notebook", FOREVER)
    amounts = {names.GPU_MEM: str(mib)}
    notebook["resources"] = {"limits": amounts, "requests": {**amounts, "memory": "64Mi"}}
    made = pod("jupyter-alice", notebook)
    made["metadata"]["labels"] = {"component": "singleuser-server", "hub.jupyter.org/username": "alice"}
    made["spec"] |= {"restartPolicy": "OnFailure", "automountServiceAccountToken": False, "enableServiceLinks": False}
    return made


def kubeflow_notebook() -> Document:
    """The StatefulSet that the notebook controller makes of a Notebook."""
    made = pod(
        "x", container("nb", FOREVER, limits=SHARE) | {"env": [{"name": "NB_PREFIX", "value": "/notebook/t/nb"}]}
    )
    labels = {"statefulset": "nb", "notebook-name": "nb"}
    template = {"metadata": {"labels": labels}, "spec": {**made["spec"], "securityContext": {"fsGroup": 100}}}
    spec = {
        "serviceName": "nb",
        "replicas": 1,
        "selector": {"matchLabels": {"statefulset": "nb"}},
        "template": template,
    }
    return {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "nb"}, "spec": spec}


def velero_restored(live: Document) -> Document:
    """A pod as Velero restores it (pkg/restore/actions): without node, priority and token, with an init container."""
    spec = {key: value for key, value in live["spec"].items() if key not in ("nodeName", "priority")}
    spec["volumes"] = [
        volume for volume in spec.get("volumes", []) if not volume["name"].startswith("kube-api-access-")
    ]
    for kind in ("containers", "initContainers"):
        spec[kind] = [{**copied, "volumeMounts": []} for copied in spec.get(kind, [])]
    spec["initContainers"] = [container("restore-wait", ("true",)), *spec["initContainers"]]
    labels = {**live["metadata"].get("labels", {}), "velero.io/backup-name": "b", "velero.io/restore-name": "r"}
    kept = {"name": live["metadata"]["name"], "annotations": live["metadata"]["annotations"], "labels": labels}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": kept, "spec": spec}


def force_delete(namespace: PodNamespace, name: str) -> None:
    namespace.cluster.api.text_of("DELETE", f"{namespace.pods_path}/{name}", gracePeriodSeconds="0")


def test_a_job_of_githubs_runner_is_refused_with_the_setting_that_helps(namespace: PodNamespace) -> None:
    message = namespace.refused(github_job(namespace, uses_scheduler=False))
    assert "spec.nodeName" in message
    assert "ACTIONS_RUNNER_USE_KUBE_SCHEDULER=true" in message


@pytest.mark.parametrize("tool", ["github", "gitlab", "jupyterhub"])
def test_a_pod_of_the_tool_runs_is_deleted_by_force_and_made_again(namespace: PodNamespace, tool: str) -> None:
    """A runner's next job and a user's next server have the same names, seconds later."""
    made = {
        "github": lambda: github_job(namespace, uses_scheduler=True),
        "gitlab": gitlab_job,
        "jupyterhub": jupyterhub_server,
    }[tool]()
    name, first = made["metadata"]["name"], made["spec"]["containers"][0]["name"]
    uids = set()
    for _ in range(2):
        uids.add(namespace.create(made)["metadata"]["uid"])
        namespace.running(name)
        assert_total_memory(namespace, name, 1024, first)
        force_delete(namespace, name)
        assert name not in namespace.phases()
    assert len(uids) == 2


def test_the_next_server_of_a_user_waits_for_the_last_ones_memory(namespace: PodNamespace) -> None:
    """The card has room for one of the two; the first ignores SIGTERM."""
    card = namespace.cluster.nodes[0].cards[0]
    made = jupyterhub_server(card.memory_mib - card.reserved_mib)
    made["metadata"]["annotations"] = {names.USE_GPU_UUID: card.uuid}
    made["spec"]["containers"][0]["command"] = ["bash", "-c", "trap '' TERM; while :; do sleep 1; done"]
    namespace.create(made)
    namespace.running("jupyter-alice")
    force_delete(namespace, "jupyter-alice")
    namespace.create(made)
    namespace.running("jupyter-alice")
    assert not [event for event in namespace.events() if "UnexpectedAdmissionError" in event["reason"]]


def test_a_notebook_of_kubeflow_comes_back_after_a_forced_deletion(namespace: PodNamespace) -> None:
    path = f"/apis/apps/v1/namespaces/{namespace.name}/statefulsets"
    namespace.cluster.api.create(path, kubeflow_notebook())
    namespace.until(lambda: "nb-0" in namespace.phases(), "the StatefulSet makes a pod")
    (first,) = namespace.running("nb-0")
    force_delete(namespace, "nb-0")

    def is_back() -> bool:
        found = [item for item in namespace.all() if item["metadata"]["uid"] != first["metadata"]["uid"]]
        return bool(found) and found[0]["status"].get("phase") == "Running"

    namespace.until(is_back, "another pod runs")
    namespace.cluster.api.delete(f"{path}/nb")


def test_a_backup_of_velero_is_restored(namespace: PodNamespace) -> None:
    namespace.create(pod("trainer", container(limits=SHARE), annotations={names.GPU_POLICY: "spread"}))
    (live,) = namespace.running("trainer")
    backup = json.loads(json.dumps(live))
    namespace.delete("trainer")
    namespace.create(velero_restored(backup))
    namespace.running("trainer")
    assert_total_memory(namespace, "trainer", 1024)


def test_the_replicas_that_an_autoscaler_adds_get_shares_of_their_own(namespace: PodNamespace) -> None:
    """A HorizontalPodAutoscaler writes the subresource `scale`; its metrics are not had here."""
    labels = {"app": "inference"}
    template = {"metadata": {"labels": labels}, "spec": pod("x", container(limits=SHARE))["spec"]}
    spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
    path = f"/apis/apps/v1/namespaces/{namespace.name}/deployments"
    namespace.cluster.api.create(path, {"metadata": {"name": "inference"}, "spec": spec})

    def run(replicas: int) -> bool:
        return list(namespace.phases().values()) == ["Running"] * replicas

    for replicas in (3, 1):
        namespace.cluster.api.patch(f"{path}/inference/scale", {"spec": {"replicas": replicas}})
        namespace.until(partial(run, replicas), f"{replicas} replicas run")
