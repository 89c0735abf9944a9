"""What the API server lets in, by its own rules and by the webhook, and who may write what."""

import base64
import json
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import yaml

from cluster import accounts, api, binaries
from cluster.cluster import Cluster
from tests.e2e.pod_namespace import Document, Space, container, pod
from vgpu import names

pytestmark = pytest.mark.e2e

FORGED = {names.ASSIGNMENT: '{"v":1,"containers":{}}'}
MANIFESTS = binaries.REPOSITORY / "manifests"


def waiting(name: str) -> Document:
    """A pod with a share that no node takes."""
    manifest = pod(name, gpu_mem=256)
    manifest["spec"]["nodeSelector"] = {"no-such": "node"}
    return manifest


def patched(space: Space, name: str, body: Document, subresource: str = "") -> str:
    """The API server's refusal of a patch; empty where it accepts."""
    try:
        space.cluster.api.patch(f"{space.pods_path}/{name}{subresource}", body)
    except api.Refused as refused:
        return refused.message
    return ""


def annotated(**annotations: str | None) -> Document:
    return {
        "metadata": {"annotations": {names.DOMAIN + "/" + key.replace("_", "-"): v for key, v in annotations.items()}}
    }


def test_only_the_extender_binds_with_an_assignment(space: Space) -> None:
    space.create(waiting("p"))
    target = {"apiVersion": "v1", "kind": "Node", "name": space.cluster.nodes[0].name}
    binding = {"metadata": {"name": "p", "annotations": FORGED}, "target": target}
    for path in (f"{space.pods_path}/p/binding", f"{space.path}/bindings"):
        with pytest.raises(api.Refused, match="only the extender"):
            space.cluster.api.create(path, {"apiVersion": "v1", "kind": "Binding", **binding})


@pytest.mark.parametrize("subresource", ["", "/status"])
def test_nobody_changes_what_a_pod_is_accounted_by(space: Space, subresource: str) -> None:
    space.create(waiting("waits"))
    space.create(pod("runs", gpu_mem=256, annotations={names.GPU_POLICY: "spread"}))
    space.running("runs")
    for name, value in (("waits", "x"), ("waits", ""), ("runs", "x"), ("runs", None)):
        assert "written once" in patched(space, name, annotated(assignment=value), subresource)
    assert "once the pod is bound" in patched(space, "runs", annotated(compute_policy="best-effort"), subresource)
    assert "once the pod is bound" in patched(space, "runs", annotated(gpu_policy=None), subresource)


def test_other_changes_of_a_running_pod_are_none_of_ours(space: Space) -> None:
    space.create(pod("p", gpu_mem=256))
    space.running("p")
    assert not patched(space, "p", {"metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}}})
    assert not patched(space, "p", {"metadata": {"finalizers": ["example.com/f"]}})
    assert not patched(space, "p", {"metadata": {"finalizers": None}})
    assert not patched(space, "p", {"status": {"message": "m"}}, "/status")


def test_a_waiting_pod_may_change_its_mind_within_reason(space: Space) -> None:
    space.create(waiting("p"))
    assert not patched(space, "p", annotated(gpu_policy="spread"))
    assert "binpack, spread" in patched(space, "p", annotated(gpu_policy="tetris"))


def test_a_debugging_container_is_given_no_cards(space: Space) -> None:
    space.create(pod("p", gpu_mem=256))
    space.running("p")
    debug = ("-n", space.name, "debug", "p", "--image=docker.io/local/pause:1")
    refused = space.cluster.kubectl(*debug, "-c", "greedy", "--env=NVIDIA_VISIBLE_DEVICES=all", check=False)
    assert "NVIDIA_VISIBLE_DEVICES" in refused
    space.cluster.kubectl(*debug, "-c", "modest")
    assert [c["name"] for c in space.get("p")["spec"]["ephemeralContainers"]] == ["modest"]


@contextmanager
def without_webhook(cluster: Cluster) -> Iterator[None]:
    cluster.webhook.stop()
    try:
        yield
    finally:
        cluster.webhook.start()


def test_what_nobody_may_go_round_does_not_depend_on_the_webhook(space: Space) -> None:
    node = space.cluster.nodes[0].name
    placed = pod("p", gpu_mem=256)
    placed["spec"]["nodeName"] = node
    foreign = pod("p", container(limits={"nvidia.com/gpumem": "256"}))
    foreign["spec"]["nodeName"] = node
    static = {**placed, "metadata": {"name": "p", "annotations": {"kubernetes.io/config.mirror": "x"}}}
    visible = [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]
    greedy = pod("p", container(gpu_mem=256), container("side") | {"env": visible})
    with without_webhook(space.cluster):
        assert "never by a user" in space.refused(pod("p", container(), annotations=FORGED))
        assert "added by the webhook" in space.refused(pod("p", container(limits={names.SLICE: "1"})))
        assert "added by the webhook" in space.refused(pod("p", container(limits={names.CARD: "1"})))
        for manifest in (placed, foreign, static):
            assert "bypass the scheduler" in space.refused(manifest)
        assert "NVIDIA_VISIBLE_DEVICES" in space.refused(greedy)
        plain = pod("plain", container() | {"env": visible})
        plain["spec"]["nodeName"] = node
        space.create(plain)


def test_a_kubelet_shows_its_static_pods(space: Space) -> None:
    mirror = pod("static", gpu_mem=256, annotations={"kubernetes.io/config.mirror": "x"})
    mirror["spec"]["nodeName"] = space.cluster.nodes[0].name
    groups = ("--as-group=system:nodes", "--as-group=system:authenticated")
    node = f"--as=system:node:{space.cluster.nodes[0].name}"
    create = ("-n", space.name, node, *groups, "create", "-o", "json", "-f", "-")
    spec = json.loads(space.cluster.kubectl(*create, stdin=json.dumps(mirror)))["spec"]  # the kubelet soon deletes it
    assert names.SLICE not in spec["containers"][0]["resources"]["limits"]
    assert "env" not in spec["containers"][0]


def test_a_plugin_speaks_for_its_own_node_only(cluster: Cluster) -> None:
    mine, others = (node.name for node in cluster.nodes)
    kubeconfig = yaml.safe_load(accounts.path(cluster.work, f"vgpu-deviceplugin-{mine}").read_text())
    plugin = api.Api(cluster.within, kubeconfig["users"][0]["user"]["token"], cluster.api._authority)
    nothing_new: Document = {"status": {"conflicts": []}}
    lease = f"/apis/coordination.k8s.io/v1/namespaces/{names.NAMESPACE}/leases"
    plugin.patch(f"{names.GPUNODES_PATH}/{mine}/status", nothing_new)
    with pytest.raises(api.Refused, match="its own node"):
        plugin.patch(f"{names.GPUNODES_PATH}/{others}/status", nothing_new)
    with pytest.raises(api.Refused, match="its own node"):
        plugin.request("PUT", f"{lease}/{names.node_lease(others)}", plugin.get(f"{lease}/{names.node_lease(others)}"))
    with pytest.raises(api.Refused, match="forbidden"):
        plugin.patch(f"{names.GPUNODES_PATH}/{mine}", {"spec": {"cards": []}})
    with pytest.raises(api.Refused, match="forbidden"):
        plugin.patch(f"/api/v1/nodes/{mine}", {})
    with pytest.raises(api.Refused, match="forbidden"):
        plugin.get("/api/v1/secrets")
    plugin.close()


def test_the_inventory_refuses_what_is_not_built_and_shows_itself(cluster: Cluster) -> None:
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


def test_a_percentage_is_resolved_by_the_cards_there_are(space: Space) -> None:
    manifest = waiting("p")
    manifest["spec"]["containers"] = [container(limits={names.GPU_MEM_PERCENTAGE: "25"})]
    limits = space.create(manifest)["spec"]["containers"][0]["resources"]["limits"]
    size = space.cluster.api.get(names.GPUNODES_PATH)["items"][0]["status"]["cards"][0]["memoryMiB"]
    assert limits.keys() == {names.GPU_MEM, names.SLICE}
    assert int(limits[names.SLICE]) == -(-(size // 4) // 256)


def bundles(cluster: Cluster) -> set[bytes]:
    path = "/apis/admissionregistration.k8s.io/v1/{}webhookconfigurations/vgpu-webhook"
    found = [cluster.api.get(path.format(kind)) for kind in ("mutating", "validating")]
    return {base64.b64decode(w["clientConfig"].get("caBundle", "")) for each in found for w in each["webhooks"]}


def test_a_withdrawn_authority_is_replaced_without_a_restart(space: Space) -> None:
    cluster = space.cluster
    (before,) = bundles(cluster)
    cluster.api.delete(f"/api/v1/namespaces/{names.NAMESPACE}/secrets/vgpu-webhook-ca")
    space.until(lambda: len(bundles(cluster)) == 1 and bundles(cluster) != {before}, "another authority is trusted")

    def is_mutated() -> bool:
        asked = cluster.api.request("POST", space.pods_path, pod("p", gpu_mem=256), query={"dryRun": "All"})
        return names.SLICE in asked["spec"]["containers"][0]["resources"]["limits"]

    space.until(is_mutated, "the webhook answers with the new certificate")


@pytest.mark.parametrize("path", ["base", "overlays/cert-manager"])
def test_the_manifests_build(cluster: Cluster, path: str) -> None:
    assert "kind: MutatingWebhookConfiguration" in cluster.kubectl("kustomize", str(MANIFESTS / path))


def test_the_server_accepts_what_the_overlay_leaves_out(cluster: Cluster) -> None:
    """Deployments, DaemonSet, Service and the like: this cluster runs the parts as processes."""
    kinds = ("deployment", "daemonset", "service", "poddisruptionbudget")
    built = cluster.kubectl("kustomize", str(MANIFESTS / "base"))
    wanted = [d for d in yaml.safe_load_all(built) if d["kind"].lower() in kinds]
    assert len(wanted) == 5
    for document in wanted:
        cluster.kubectl("create", "--dry-run=server", "-f", "-", stdin=json.dumps(document))
