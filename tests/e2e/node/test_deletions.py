"""A card is free only after the containers that used it have ended, also when their pod was deleted by force."""

import contextlib
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cluster import progress, wait
from cluster.cluster import GpuCluster
from tests.e2e.fuzz.tenant import PODS, Reply, Request, Tenant
from tests.e2e.pod_namespace import Document, container, held_slices, pod
from vgpu.domain import names

pytestmark = pytest.mark.e2e

GRACE_S = 6  # for which a container that ignores SIGTERM runs on
_MARKER = "stubborn-container"
STUBBORN = ("/bin/bash", "-c", f"trap '' TERM; while :; do sleep 1; done # {_MARKER}")


@pytest.fixture
def tenant(cluster: GpuCluster) -> Iterator[Tenant]:
    """A user with rights on pods; the pods are gone at the end."""
    tenant = Tenant(cluster)
    yield tenant
    tenant.send(Request("DELETE", f"{PODS}?gracePeriodSeconds=1"))
    wait.until(lambda: not cluster.api.get(PODS)["items"], "the tenant's pods are gone", 60)
    wait.until(lambda: not held_slices(cluster), "no slice held", 60)
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


def whole(cluster: GpuCluster, name: str, grace_s: int) -> Document:
    """A pod with all memory of the first node's first card."""
    card = cluster.nodes[0].cards[0]
    manifest = pod(
        name,
        container(command=STUBBORN, gpu_mem=card.memory_mib - card.reserved_mib),
        annotations={names.USE_GPU_UUID: card.uuid},
    )
    manifest["spec"]["terminationGracePeriodSeconds"] = grace_s
    return manifest


def is_alive(marker: str) -> bool:
    """Whether a process of this machine has the marker in its command line."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if marker.encode() in path.read_bytes() and path.parent.joinpath("stat").read_text().split()[2] != "Z":
                return True
    return False


def force_delete(tenant: Tenant) -> Reply:
    return delete(tenant, "first", 0)


def force_evict(tenant: Tenant) -> Reply:
    return evict(tenant, "first", 0)


def force_delete_all(tenant: Tenant) -> Reply:
    return tenant.send(Request("DELETE", f"{PODS}?gracePeriodSeconds=0"))


def force_delete_a_terminating_pod(tenant: Tenant) -> Reply:
    assert delete(tenant, "first", GRACE_S).is_success
    return delete(tenant, "first", 0)


@pytest.mark.parametrize(
    "remove", [force_delete, force_evict, force_delete_all, force_delete_a_terminating_pod], ids=lambda f: f.__name__
)
def test_a_card_is_given_out_only_after_the_processes_of_a_pod_deleted_by_force_have_ended(
    cluster: GpuCluster, tenant: Tenant, remove: Callable[[Tenant], Reply]
) -> None:
    """The API server removes the pod at once; its memory is not given out while processes use it."""
    create(cluster, tenant, whole(cluster, "first", GRACE_S), "Running")
    wait.until(lambda: is_alive(_MARKER), "the first pod's process runs", 30)
    assert remove(tenant).is_success
    assert "first" not in names_of(cluster)
    assert_waits_for_the_end_of_first(cluster, tenant)


def test_a_grace_period_of_zero_in_the_manifest_is_admitted(cluster: GpuCluster, tenant: Tenant) -> None:
    """GitLab's runner and others set it; every deletion of such a pod is one by force."""
    create(cluster, tenant, whole(cluster, "first", 0), "Running")
    wait.until(lambda: is_alive(_MARKER), "the first pod's process runs", 30)
    assert tenant.send(Request("DELETE", f"{PODS}/first")).is_success
    assert "first" not in names_of(cluster)
    assert_waits_for_the_end_of_first(cluster, tenant)


def test_a_plugin_that_is_killed_meanwhile_finds_the_processes_of_a_pod_deleted_by_force(
    cluster: GpuCluster, tenant: Tenant
) -> None:
    create(cluster, tenant, whole(cluster, "first", 2 * GRACE_S), "Running")
    wait.until(lambda: is_alive(_MARKER), "the first pod's process runs", 30)
    cluster.plugins[0].kill()
    assert delete(tenant, "first", 0).is_success
    cluster.plugins[0].start()
    assert_waits_for_the_end_of_first(cluster, tenant)


def assert_waits_for_the_end_of_first(cluster: GpuCluster, tenant: Tenant) -> None:
    """Create a pod that needs the whole card, and look that it starts after the first pod's end, and soon."""
    card = cluster.nodes[0].cards[0]
    next_pod = pod("next", gpu_mem=card.memory_mib - card.reserved_mib, annotations={names.USE_GPU_UUID: card.uuid})
    assert tenant.send(Request("POST", PODS, json.dumps(next_pod).encode())).is_success
    outlived = 0.0
    began = time.monotonic()
    while is_alive(_MARKER):
        status = cluster.api.get(f"{PODS}/next")["status"]
        if is_alive(_MARKER):
            outlived = time.monotonic() - began
            assert status["phase"] == "Pending", status
        time.sleep(0.1)
    wait.until(lambda: cluster.api.get(f"{PODS}/next")["status"]["phase"] != "Pending", "the next pod starts", 20)
    started = time.monotonic() - began
    progress.say(f"the first pod's process outlived it by {outlived:.1f} s; the next pod began after {started:.1f} s")
    final = cluster.api.get(f"{PODS}/next")["status"]
    assert final["phase"] == "Running", final


def names_of(cluster: GpuCluster) -> set[str]:
    return {item["metadata"]["name"] for item in cluster.api.get(PODS)["items"]}


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
