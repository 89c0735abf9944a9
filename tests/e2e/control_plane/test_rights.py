"""What the parts' accounts may not do, asked of a real API server."""

import pytest

from cluster import api, wait
from cluster.cluster import GpuCluster
from tests.e2e.pod_namespace import PodNamespace, pod
from vgpu.domain import names

pytestmark = pytest.mark.e2e

ACCOUNTS = f"/api/v1/namespaces/{names.NAMESPACE}/serviceaccounts"
SECRETS = f"/api/v1/namespaces/{names.NAMESPACE}/secrets"


def client_of(cluster: GpuCluster, account: str, node: str = "") -> api.ClusterApi:
    """A client with a token of an account; the token names a node where one is given."""
    spec: api.Document = {"expirationSeconds": 3600}
    if node:
        uid = cluster.api.get(f"/api/v1/nodes/{node}")["metadata"]["uid"]
        spec["boundObjectRef"] = {"apiVersion": "v1", "kind": "Node", "name": node, "uid": uid}
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
    token = cluster.api.create(f"{ACCOUNTS}/{account}/token", request)["status"]["token"]
    return api.ClusterApi(cluster.within, token, cluster.api._authority)


def test_the_plugins_account_evicts_no_pod_and_writes_no_event(cluster: GpuCluster, namespace: PodNamespace) -> None:
    namespace.create(pod("victim", gpu_mem=256))
    plugin = client_of(cluster, "vgpu-deviceplugin", cluster.nodes[0].name)
    eviction = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": "victim", "namespace": namespace.name},
    }
    with pytest.raises(api.RequestRefused, match="forbidden"):
        plugin.create(f"{namespace.pods_path}/victim/eviction", eviction)
    with pytest.raises(api.RequestRefused, match="forbidden"):
        plugin.create(f"{namespace.path}/events", {"metadata": {"name": "e"}, "involvedObject": {}})
    plugin.close()


def test_a_plugins_token_without_a_node_writes_nothing(cluster: GpuCluster) -> None:
    plugin, node = client_of(cluster, "vgpu-deviceplugin"), cluster.nodes[0].name
    with pytest.raises(api.RequestRefused, match="its own node"):
        plugin.patch(f"{names.GPUNODES_PATH}/{node}/status", {"status": {"conflicts": []}})
    plugin.close()


def test_a_refusal_in_the_status_of_a_gpunode_evicts_only_pods_of_that_node(
    cluster: GpuCluster, namespace: PodNamespace
) -> None:
    made = [
        pod(f"p{n}", annotations={names.USE_GPU_UUID: node.cards[0].uuid}, gpu_mem=256)
        for n, node in enumerate(cluster.nodes)
    ]
    uids = [namespace.create(manifest)["metadata"]["uid"] for manifest in made]
    namespace.running("p0", "p1")
    plugin, node = client_of(cluster, "vgpu-deviceplugin", cluster.nodes[0].name), cluster.nodes[0].name
    entries = [
        {"podUID": uid, "pod": "p", "reason": "CardMismatch", "message": "a test", "evict": True} for uid in uids
    ]
    plugin.patch(f"{names.GPUNODES_PATH}/{node}/status", {"status": {"refusals": entries}})
    namespace.until(lambda: "p0" not in namespace.phases(), "the pod of the reporting node is evicted")
    assert namespace.get("p1")["metadata"].get("deletionTimestamp") is None
    plugin.close()


def test_the_webhooks_account_creates_no_secret(cluster: GpuCluster) -> None:
    webhook = client_of(cluster, "vgpu-webhook")
    token_of = {"kubernetes.io/service-account.name": "vgpu-extender"}
    secret = {"metadata": {"name": "token", "annotations": token_of}, "type": "kubernetes.io/service-account-token"}
    with pytest.raises(api.RequestRefused, match="forbidden"):
        webhook.create(SECRETS, secret)
    own = webhook.get(f"{SECRETS}/vgpu-webhook-ca")
    with pytest.raises(api.RequestRefused, match="immutable"):
        webhook.request("PUT", f"{SECRETS}/vgpu-webhook-ca", {**own, "type": secret["type"]})
    webhook.close()


def test_kubectl_explains_fields_and_a_gpunode_has_conditions(cluster: GpuCluster) -> None:
    """A finding of a test before, on the same cluster, ends within two looks at the processes."""
    assert "Code of the refusal" in cluster.kubectl("explain", "gpunode.status.refusals")
    path = f"{names.GPUNODES_PATH}/{cluster.nodes[0].name}"
    of_node = ("Registered", "NoConflicts", "NoUninvitedProcesses", "LimitsEnforced", "SettingsKnown", "ArbiterRuns")
    wanted = dict.fromkeys(("CardsHealthy", *of_node), "True")

    def conditions() -> dict[str, str]:
        return {found["type"]: found["status"] for found in cluster.api.get(path)["status"]["conditions"]}

    wait.until(lambda: conditions() == wanted, "each condition is true, and there are no others", 20)
