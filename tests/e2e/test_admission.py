"""Which objects and changes the API server accepts, by its policies and by the webhook."""

import base64
import json
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import yaml

from cluster import accounts, api, binaries
from cluster.cluster import Cluster
from tests.e2e.pod_namespace import Document, PodNamespace, container, pod
from vgpu import names

pytestmark = pytest.mark.e2e

FORGED = {names.ASSIGNMENT: '{"v":1,"containers":{}}'}
MANIFESTS = binaries.REPOSITORY / "manifests"


def waiting(name: str) -> Document:
    """A pod with a share whose node selector matches no node."""
    manifest = pod(name, gpu_mem=256)
    manifest["spec"]["nodeSelector"] = {"no-such": "node"}
    return manifest


def patched(namespace: PodNamespace, name: str, body: Document, subresource: str = "") -> str:
    """The API server's message for a refused patch; empty where the patch is accepted."""
    try:
        namespace.cluster.api.patch(f"{namespace.pods_path}/{name}{subresource}", body)
    except api.Refused as refused:
        return refused.message
    return ""


def annotated(**annotations: str | None) -> Document:
    return {
        "metadata": {"annotations": {names.DOMAIN + "/" + key.replace("_", "-"): v for key, v in annotations.items()}}
    }


def test_only_the_extender_binds_with_an_assignment(namespace: PodNamespace) -> None:
    namespace.create(waiting("p"))
    target = {"apiVersion": "v1", "kind": "Node", "name": namespace.cluster.nodes[0].name}
    binding = {"metadata": {"name": "p", "annotations": FORGED}, "target": target}
    for path in (f"{namespace.pods_path}/p/binding", f"{namespace.path}/bindings"):
        with pytest.raises(api.Refused, match="only the extender"):
            namespace.cluster.api.create(path, {"apiVersion": "v1", "kind": "Binding", **binding})


@pytest.mark.parametrize("subresource", ["", "/status"])
def test_a_pods_assignment_and_policies_are_immutable(namespace: PodNamespace, subresource: str) -> None:
    namespace.create(waiting("waits"))
    namespace.create(pod("runs", gpu_mem=256, annotations={names.GPU_POLICY: "spread"}))
    namespace.running("runs")
    for name, value in (("waits", "x"), ("waits", ""), ("runs", "x"), ("runs", None)):
        assert "written once" in patched(namespace, name, annotated(assignment=value), subresource)
    assert "once the pod is bound" in patched(namespace, "runs", annotated(compute_policy="best-effort"), subresource)
    assert "once the pod is bound" in patched(namespace, "runs", annotated(gpu_policy=None), subresource)


def test_labels_finalizers_and_status_of_a_running_pod_may_change(namespace: PodNamespace) -> None:
    namespace.create(pod("p", gpu_mem=256))
    namespace.running("p")
    assert not patched(namespace, "p", {"metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}}})
    assert not patched(namespace, "p", {"metadata": {"finalizers": ["example.com/f"]}})
    assert not patched(namespace, "p", {"metadata": {"finalizers": None}})
    assert not patched(namespace, "p", {"status": {"message": "m"}}, "/status")


def test_a_pending_pod_may_change_its_policy_to_a_known_policy(namespace: PodNamespace) -> None:
    namespace.create(waiting("p"))
    assert not patched(namespace, "p", annotated(gpu_policy="spread"))
    assert "binpack, spread" in patched(namespace, "p", annotated(gpu_policy="tetris"))


def test_an_ephemeral_container_gets_no_cards(namespace: PodNamespace) -> None:
    namespace.create(pod("p", gpu_mem=256))
    namespace.running("p")
    debug = ("-n", namespace.name, "debug", "p", "--image=docker.io/local/pause:1")
    refused = namespace.cluster.kubectl(*debug, "-c", "greedy", "--env=NVIDIA_VISIBLE_DEVICES=all", check=False)
    assert "NVIDIA_VISIBLE_DEVICES" in refused
    namespace.cluster.kubectl(*debug, "-c", "modest")
    assert [c["name"] for c in namespace.get("p")["spec"]["ephemeralContainers"]] == ["modest"]


@contextmanager
def without_webhook(cluster: Cluster) -> Iterator[None]:
    cluster.webhook.stop()
    try:
        yield
    finally:
        cluster.webhook.start()


def test_policies_refuse_ways_round_the_scheduler_while_the_webhook_is_down(namespace: PodNamespace) -> None:
    node = namespace.cluster.nodes[0].name
    placed = pod("p", gpu_mem=256)
    placed["spec"]["nodeName"] = node
    foreign = pod("p", container(limits={"nvidia.com/gpumem": "256"}))
    foreign["spec"]["nodeName"] = node
    static = {**placed, "metadata": {"name": "p", "annotations": {"kubernetes.io/config.mirror": "x"}}}
    visible = [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]
    greedy = pod("p", container(gpu_mem=256), container("side") | {"env": visible})
    with without_webhook(namespace.cluster):
        assert "never by a user" in namespace.refused(pod("p", container(), annotations=FORGED))
        assert "added by the webhook" in namespace.refused(pod("p", container(limits={names.SLICE: "1"})))
        assert "added by the webhook" in namespace.refused(pod("p", container(limits={names.CARD: "1"})))
        for manifest in (placed, foreign, static):
            assert "bypass the scheduler" in namespace.refused(manifest)
        assert "NVIDIA_VISIBLE_DEVICES" in namespace.refused(greedy)
        plain = pod("plain", container() | {"env": visible})
        plain["spec"]["nodeName"] = node
        namespace.create(plain)


def test_the_mirror_pod_of_a_static_pod_is_created_unchanged(namespace: PodNamespace) -> None:
    mirror = pod("static", gpu_mem=256, annotations={"kubernetes.io/config.mirror": "x"})
    mirror["spec"]["nodeName"] = namespace.cluster.nodes[0].name
    groups = ("--as-group=system:nodes", "--as-group=system:authenticated")
    node = f"--as=system:node:{namespace.cluster.nodes[0].name}"
    create = ("-n", namespace.name, node, *groups, "create", "-o", "json", "-f", "-")
    spec = json.loads(namespace.cluster.kubectl(*create, stdin=json.dumps(mirror)))[
        "spec"
    ]  # the kubelet soon deletes it
    assert names.SLICE not in spec["containers"][0]["resources"]["limits"]
    assert "env" not in spec["containers"][0]


def test_a_plugin_writes_only_its_own_node(cluster: Cluster) -> None:
    own, other = (node.name for node in cluster.nodes)
    kubeconfig = yaml.safe_load(accounts.path(cluster.work, f"vgpu-deviceplugin-{own}").read_text())
    plugin = api.Api(cluster.within, kubeconfig["users"][0]["user"]["token"], cluster.api._authority)
    status_patch: Document = {"status": {"conflicts": []}}
    lease = f"/apis/coordination.k8s.io/v1/namespaces/{names.NAMESPACE}/leases"
    plugin.patch(f"{names.GPUNODES_PATH}/{own}/status", status_patch)
    with pytest.raises(api.Refused, match="its own node"):
        plugin.patch(f"{names.GPUNODES_PATH}/{other}/status", status_patch)
    with pytest.raises(api.Refused, match="its own node"):
        plugin.request("PUT", f"{lease}/{names.node_lease(other)}", plugin.get(f"{lease}/{names.node_lease(other)}"))
    with pytest.raises(api.Refused, match="forbidden"):
        plugin.patch(f"{names.GPUNODES_PATH}/{own}", {"spec": {"cards": []}})
    with pytest.raises(api.Refused, match="forbidden"):
        plugin.patch(f"/api/v1/nodes/{own}", {})
    with pytest.raises(api.Refused, match="forbidden"):
        plugin.get("/api/v1/secrets")
    plugin.close()


def test_gpunode_settings_are_validated_and_kubectl_prints_columns(cluster: Cluster) -> None:
    node = cluster.nodes[0]
    path = f"{names.GPUNODES_PATH}/{node.name}"
    with pytest.raises(api.Refused, match="mode mps is not built yet"):
        cluster.api.patch(path, {"spec": {"cards": [{"uuid": node.cards[0].uuid, "mode": "mps"}]}})
    watermark = {"high": 70, "low": 70}
    with pytest.raises(api.Refused, match="high must be above low"):
        cluster.api.patch(path, {"spec": {"cards": [{"uuid": node.cards[0].uuid, "watermark": watermark}]}})
    with pytest.raises(api.Refused, match="Duplicate"):
        cluster.api.patch(path, {"spec": {"cards": [{"uuid": "GPU-1"}, {"uuid": "GPU-1"}]}})
    (header, row, *_) = cluster.kubectl("get", "gpunodes").splitlines()
    assert header.split() == ["NAME", "CARDS", "HEALTHY", "MODELS", "MEMORY", "HELD", "PLUGIN", "AGE"]
    assert row.split()[:3] == [node.name, "4", "4"]
    assert "320 GiB" in row


def test_a_memory_percentage_becomes_mib_of_the_clusters_cards(namespace: PodNamespace) -> None:
    manifest = waiting("p")
    manifest["spec"]["containers"] = [container(limits={names.GPU_MEM_PERCENTAGE: "25"})]
    limits = namespace.create(manifest)["spec"]["containers"][0]["resources"]["limits"]
    size = namespace.cluster.api.get(names.GPUNODES_PATH)["items"][0]["status"]["cards"][0]["memoryMiB"]
    assert limits.keys() == {names.GPU_MEM, names.SLICE}
    assert int(limits[names.SLICE]) == -(-(size // 4) // 256)


def bundles(cluster: Cluster) -> set[bytes]:
    path = "/apis/admissionregistration.k8s.io/v1/{}webhookconfigurations/vgpu-webhook"
    found = [cluster.api.get(path.format(kind)) for kind in ("mutating", "validating")]
    return {base64.b64decode(w["clientConfig"].get("caBundle", "")) for each in found for w in each["webhooks"]}


def test_an_emptied_ca_secret_is_filled_without_a_restart(namespace: PodNamespace) -> None:
    cluster = namespace.cluster
    (before,) = bundles(cluster)
    cluster.api.patch(f"/api/v1/namespaces/{names.NAMESPACE}/secrets/vgpu-webhook-ca", {"data": None})
    namespace.until(lambda: len(bundles(cluster)) == 1 and bundles(cluster) != {before}, "another CA is trusted")

    def is_mutated() -> bool:
        created = cluster.api.request("POST", namespace.pods_path, pod("p", gpu_mem=256), query={"dryRun": "All"})
        return names.SLICE in created["spec"]["containers"][0]["resources"]["limits"]

    namespace.until(is_mutated, "the webhook answers with the new certificate")


@pytest.mark.parametrize("path", ["base", "overlays/cert-manager"])
def test_the_manifests_build(cluster: Cluster, path: str) -> None:
    assert "kind: MutatingWebhookConfiguration" in cluster.kubectl("kustomize", str(MANIFESTS / path))


def test_the_api_server_accepts_the_manifests_that_this_cluster_does_not_apply(cluster: Cluster) -> None:
    """Deployments, the DaemonSet, the Service and the PodDisruptionBudget: here the parts run as processes."""
    kinds = ("deployment", "daemonset", "service", "poddisruptionbudget")
    built = cluster.kubectl("kustomize", str(MANIFESTS / "base"))
    wanted = [d for d in yaml.safe_load_all(built) if d["kind"].lower() in kinds]
    assert len(wanted) == 6
    for document in wanted:
        cluster.kubectl("create", "--dry-run=server", "-f", "-", stdin=json.dumps(document))
