"""A ResourceQuota on what users ask for: the API server refuses, and says by how much."""

from typing import Any

import pytest

from cluster import api
from tests.e2e.pod_namespace import PodNamespace, container, pod
from vgpu.domain import names

pytestmark = pytest.mark.e2e

MEMORY, CORES, CARD = (f"requests.{name}" for name in (names.GPU_MEM, names.GPU_CORES, names.CARD))
QUOTA = "gpus"


def limit(namespace: PodNamespace, **hard: str) -> None:
    """Create the quota, and wait until the API server enforces it."""
    path = f"{namespace.path}/resourcequotas"
    named = {{"memory": MEMORY, "cores": CORES, "card": CARD}[short]: amount for short, amount in hard.items()}
    namespace.cluster.api.create(path, {"metadata": {"name": QUOTA}, "spec": {"hard": named}})
    namespace.until(lambda: status(namespace).get("hard") == named, "the quota is enforced")


def status(namespace: PodNamespace) -> dict[str, Any]:
    found: dict[str, Any] = namespace.cluster.api.get(f"{namespace.path}/resourcequotas/{QUOTA}")["status"]
    return found


def used(namespace: PodNamespace, resource: str) -> str:
    """What counts against the quota, as `kubectl describe quota` shows it."""
    return str(status(namespace)["used"][resource])


def test_memory_and_time_are_counted_as_the_user_asked_for_them(namespace: PodNamespace) -> None:
    limit(namespace, memory="16384", cores="100")
    namespace.create(pod("one", gpu_mem=8192, gpu_cores=60))
    namespace.create(pod("hami", container(limits={"nvidia.com/gpu": "1", "nvidia.com/gpumem": "2048"})))
    namespace.create(pod("percent", container(limits={names.GPU_MEM_PERCENTAGE: "5"})))
    memory = str(8192 + 2048 + 4096)  # 5 percent of 80 GiB
    # Kubernetes' controller may write what it last knew over what the API server has added.
    namespace.until(lambda: used(namespace, MEMORY) == memory, "all three count")
    refused = namespace.refused(pod("two-cards", gpu_mem=4096, gpu=2))
    assert (
        f"exceeded quota: {QUOTA}, requested: {MEMORY}=4096, used: {MEMORY}=14336, limited: {MEMORY}=16384" in refused
    )
    refused = namespace.refused(pod("time", gpu_mem=256, gpu_cores=50))
    assert f"requested: {CORES}=50, used: {CORES}=60, limited: {CORES}=100" in refused
    namespace.running("one", "hami", "percent")
    namespace.delete("one")
    namespace.until(lambda: used(namespace, MEMORY) == "6144", "the deleted pod counts no longer")
    namespace.create(pod("two-cards", gpu_mem=4096, gpu=2))
    namespace.running("two-cards")


def test_whole_cards_have_a_quota_of_their_own(namespace: PodNamespace) -> None:
    limit(namespace, memory="1024", card="2")
    namespace.create(pod("whole", gpu=2))
    namespace.create(pod("share", gpu_mem=1024))
    refused = namespace.refused(pod("more", gpu=1))
    assert f"requested: {CARD}=1, used: {CARD}=2, limited: {CARD}=2" in refused
    namespace.running("whole", "share")


def test_a_deployments_pods_that_are_beyond_the_quota_are_named_in_its_events(namespace: PodNamespace) -> None:
    limit(namespace, memory="8192")
    template = pod("", gpu_mem=6144)
    labels = {"app": "train"}
    spec = {"replicas": 2, "selector": {"matchLabels": labels}}
    spec["template"] = {"metadata": {"labels": labels}, "spec": template["spec"]}
    path = f"/apis/apps/v1/namespaces/{namespace.name}/deployments"
    namespace.cluster.api.create(path, {"metadata": {"name": "train"}, "spec": spec})
    expected = f"exceeded quota: {QUOTA}, requested: {MEMORY}=6144, used: {MEMORY}=6144, limited: {MEMORY}=8192"
    namespace.until(
        lambda: any(e["reason"] == "FailedCreate" and expected in e["message"] for e in namespace.events()),
        "an Event of the ReplicaSet",
    )
    assert len(namespace.phases()) == 1


def test_a_quota_counts_what_users_write_only(namespace: PodNamespace) -> None:
    """A user who cannot write slices and cards cannot use up, or go round, a quota by them."""
    limit(namespace, card="1")
    with pytest.raises(api.RequestRefused, match="added by the webhook"):
        namespace.create(pod("p", container(limits={names.CARD: "1"})))
    assert used(namespace, CARD) == "0"
