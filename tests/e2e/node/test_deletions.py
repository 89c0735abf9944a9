"""A card is free only after the containers that used it have ended, also for users who delete pods by force."""

import json
from collections.abc import Iterator

import pytest

from cluster import api, wait
from cluster.cluster import GpuCluster
from tests.e2e.fuzz.tenant import PODS, Reply, Request, Tenant
from tests.e2e.pod_namespace import Document, container, pod

pytestmark = pytest.mark.e2e

STUBBORN = ("/bin/bash", "-c", "trap '' TERM; while :; do sleep 1; done")


@pytest.fixture
def tenant(cluster: GpuCluster) -> Iterator[Tenant]:
    """A user with rights on pods; the pods are gone at the end."""
    tenant = Tenant(cluster)
    yield tenant
    tenant.send(Request("DELETE", f"{PODS}?gracePeriodSeconds=1"))
    wait.until(lambda: not cluster.api.get(PODS)["items"], "the tenant's pods are gone", 60)
    tenant.close()


def create(cluster: GpuCluster, tenant: Tenant, manifest: Document, phase: str) -> None:
    created = tenant.send(Request("POST", PODS, json.dumps(manifest).encode()))
    assert created.is_success, created.message
    path = f"{PODS}/{manifest['metadata']['name']}"
    wait.until(lambda: cluster.api.get(path).get("status", {}).get("phase") == phase, f"{path} is {phase}", 60)


def delete(tenant: Tenant, name: str, grace_s: int) -> Reply:
    return tenant.send(Request("DELETE", f"{PODS}/{name}?gracePeriodSeconds={grace_s}"))


def evict(tenant: Tenant, name: str, grace_s: int) -> Reply:
    eviction = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": name},
        "deleteOptions": {"gracePeriodSeconds": grace_s},
    }
    return tenant.send(Request("POST", f"{PODS}/{name}/eviction", json.dumps(eviction).encode()))


def test_a_pod_that_uses_cards_is_not_removed_before_its_containers_end(cluster: GpuCluster, tenant: Tenant) -> None:
    """Its cards would be given out for the seconds in which its processes still hold their memory."""
    create(cluster, tenant, pod("p", container(command=STUBBORN, gpu_mem=256)), "Running")
    for refused in (
        delete(tenant, "p", 0),
        evict(tenant, "p", 0),
        tenant.send(Request("DELETE", f"{PODS}?gracePeriodSeconds=0")),
    ):
        assert "by force" in refused.message
    assert delete(tenant, "p", 1).is_success
    assert "by force" in delete(tenant, "p", 0).message, "the pod is terminating, and its container runs"
    wait.until(lambda: "p" not in names_of(cluster), "the pod is gone", 30)


def names_of(cluster: GpuCluster) -> set[str]:
    return {item["metadata"]["name"] for item in cluster.api.get(PODS)["items"]}


def test_a_grace_period_of_zero_in_the_manifest_is_refused(tenant: Tenant) -> None:
    manifest = pod("p", gpu_mem=256)
    manifest["spec"]["terminationGracePeriodSeconds"] = 0
    refused = tenant.send(Request("POST", PODS, json.dumps(manifest).encode()))
    assert "terminationGracePeriodSeconds must be at least 1" in refused.message


def test_pods_that_use_no_card_may_be_deleted_by_force(cluster: GpuCluster, tenant: Tenant) -> None:
    waiting = pod("waiting", gpu_mem=256)
    waiting["spec"]["nodeSelector"] = {"no-such": "node"}
    ended = pod("ended", container(command=("true",), gpu_mem=256))
    ended["spec"]["restartPolicy"] = "Never"
    create(cluster, tenant, waiting, "Pending")
    create(cluster, tenant, ended, "Succeeded")
    create(cluster, tenant, pod("plain", container()), "Running")
    for name in ("waiting", "ended", "plain"):
        assert delete(tenant, name, 0).is_success


def test_those_who_may_delete_nodes_may_delete_by_force(cluster: GpuCluster, tenant: Tenant) -> None:
    """A lost node never confirms that a container has ended."""
    create(cluster, tenant, pod("p", gpu_mem=256), "Running")
    cluster.api.text_of("DELETE", f"{PODS}/p", gracePeriodSeconds="0")
    with pytest.raises(api.RequestRefused):
        cluster.api.get(f"{PODS}/p")
