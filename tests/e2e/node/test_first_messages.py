"""What users see of the cases in the guide's table "Why is my pod pending?" that the API server and kubectl word."""

import pytest

from cluster.parts import stopped
from cluster.programs import binaries
from tests.e2e.node.test_node_files import at
from tests.e2e.pod_namespace import Document, PodNamespace, container, is_running, pod
from vgpu.domain import names

pytestmark = pytest.mark.e2e

GUIDE = (binaries.REPOSITORY / "docs" / "guide.md").read_text()
WHOLE_CARD_MIB = 80 * 1024


def messages(namespace: PodNamespace, name: str) -> str:
    return " ".join(event["message"] for event in namespace.events(name))


def test_a_stopped_extender_is_told_by_its_refused_connection(namespace: PodNamespace) -> None:
    """kube-scheduler's text, by whose beginning and end the guide's row is found."""
    with stopped(namespace.cluster.extender):
        namespace.create(pod("waits", gpu_mem=256))
        namespace.until(lambda: "connection refused" in messages(namespace, "waits"), "an Event", 60)
    said = messages(namespace, "waits")
    assert 'Post "http://127.0.0.1:9870/filter"' in said
    assert '`Post "http://127.0.0.1:9870/filter": ... connection refused`' in GUIDE
    namespace.running("waits")


def test_a_pod_that_names_a_cordoned_card_is_told_of_the_cordon(namespace: PodNamespace) -> None:
    """The pod names a cordoned card: that is its reason, and not that the other cards have other UUIDs."""
    node = namespace.cluster.nodes[1]
    path = f"{names.GPUNODES_PATH}/{node.name}"
    namespace.cluster.api.patch(path, {"spec": {"cards": [{"uuid": node.cards[2].uuid, "cordoned": True}]}})
    try:
        namespace.create(pod("waits", gpu_mem=256, annotations=at(node, 2)))
        (event, *_) = namespace.until(lambda: namespace.extender_events("waits"), "an Event")
    finally:
        namespace.cluster.api.patch(path, {"spec": {"cards": []}})
    assert event["reason"] == "CardCordoned"
    assert event["message"].startswith(f"needs 256 MiB on 1 card; {node.name}: ")


def rolling(max_surge: int) -> Document:
    return {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": max_surge, "maxUnavailable": 1 - max_surge}}


def deployment(namespace: PodNamespace, max_surge: int) -> Document:
    """One replica that takes a whole card's memory of the first node's first card."""
    labels = {"app": "server"}
    main = container(gpu_mem=WHOLE_CARD_MIB)
    manifest = pod("", main)
    metadata = {"labels": labels, "annotations": at(namespace.cluster.nodes[0], 0)}
    spec: Document = {"replicas": 1, "selector": {"matchLabels": labels}}
    spec["template"] = {"metadata": metadata, "spec": manifest["spec"]}
    spec["strategy"] = rolling(max_surge)
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "server"}, "spec": spec}


def test_an_update_of_one_replica_that_hangs_goes_on_with_max_surge_0(namespace: PodNamespace) -> None:
    path = f"/apis/apps/v1/namespaces/{namespace.name}/deployments"
    namespace.cluster.api.create(path, deployment(namespace, max_surge=1))
    (first,) = namespace.until(lambda: list(namespace.phases()), "a pod")
    namespace.running(first)
    changed = {"spec": {"template": {"metadata": {"labels": {"app": "server", "version": "2"}}}}}
    namespace.cluster.api.patch(f"{path}/server", changed)
    (second,) = namespace.until(lambda: [name for name in namespace.phases() if name != first], "the update's pod")
    namespace.until(lambda: "CardInsufficientMemory" in messages(namespace, second), "the reason of the guide's table")
    assert "`CardInsufficientMemory` or `CardInUse`, of the new pod of a Deployment's update" in GUIDE
    assert namespace.phases() == {first: "Running", second: "Pending"}
    namespace.cluster.api.patch(f"{path}/server", {"spec": {"strategy": rolling(max_surge=0)}})
    namespace.until(lambda: [is_running(item) for item in namespace.all()] == [True], "the new pod alone runs", 90)
    assert first not in namespace.phases()
