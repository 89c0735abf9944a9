"""Pods that use a card without a share of it: an Event within ten seconds, and a condition of the GPUNode."""

import time

import pytest

from cluster import bare, nodes, wait
from simgpu import usage
from tests.e2e.node.test_node_files import at
from tests.e2e.pod_namespace import Document, PodNamespace, container, pod
from vgpu.domain import names

pytestmark = pytest.mark.e2e

HOLD = ("gpuprobe", "alloc", "64", "--hold", "0")
WITHIN_S = 10
LIBRARY = "/usr/lib/x86_64-linux-gnu/libcuda.so.1"


def condition(namespace: PodNamespace, node: nodes.ClusterNode) -> Document:
    status = namespace.cluster.api.get(f"{names.GPUNODES_PATH}/{node.name}")["status"]
    (found,) = [condition for condition in status["conditions"] if condition["type"] == "NoUninvitedProcesses"]
    return dict(found)


def until_used(namespace: PodNamespace, node: nodes.ClusterNode, card: int) -> float:
    """Wait until memory of a card is in use; return the time."""
    used = lambda: usage.bytes_by_card(node.driver_state).get(node.cards[card].uuid)  # noqa: E731
    namespace.until(used, "the card is in use")
    return time.monotonic()


def until_reported(namespace: PodNamespace, name: str, since: float) -> str:
    """Wait for the Event about a pod; return its message."""
    events = namespace.until(
        lambda: [e for e in namespace.extender_events(name) if e["reason"] == names.CARD_USED_WITHOUT_SHARE],
        f"an Event about {name}",
        WITHIN_S,
    )
    assert time.monotonic() - since < wait.allowed(WITHIN_S)
    return str(events[0]["message"])


def test_a_pod_whose_configmap_names_all_cards_is_reported_and_one_with_a_share_is_not(
    namespace: PodNamespace,
) -> None:
    """Admission cannot see an environment that comes from a ConfigMap or from the image."""
    node = namespace.cluster.nodes[0]
    namespace.create(pod("invited", container(command=HOLD, gpu_mem=1024), annotations=at(node, 1)))
    namespace.running("invited")
    until_used(namespace, node, 1)
    settings = {"metadata": {"name": "all"}, "data": {"NVIDIA_VISIBLE_DEVICES": "all"}}
    namespace.cluster.api.create(f"{namespace.path}/configmaps", settings)
    uninvited = pod("uninvited", container(command=HOLD) | {"envFrom": [{"configMapRef": {"name": "all"}}]})
    uninvited["spec"]["nodeName"] = node.name
    namespace.create(uninvited)
    message = until_reported(namespace, "uninvited", until_used(namespace, node, 0))
    assert f"card 0 ({node.cards[0].uuid})" in message
    assert f"{namespace.name}/uninvited container main process" in message
    assert "(gpuprobe)" in message
    assert condition(namespace, node)["status"] == "False"
    assert "invited container" not in condition(namespace, node)["message"].replace("uninvited container", "")
    assert [event["reason"] for event in namespace.extender_events("invited")] == []
    assert namespace.phases() == {"invited": "Running", "uninvited": "Running"}
    namespace.delete("uninvited")
    namespace.until(lambda: condition(namespace, node)["status"] == "True", "the finding ends", WITHIN_S)
    assert namespace.phases() == {"invited": "Running"}


def test_a_container_beside_one_with_a_share_that_mounts_the_driver_is_reported(namespace: PodNamespace) -> None:
    """The pod holds a share of another card; its second container opens this card by way of hostPath volumes."""
    node = namespace.cluster.nodes[0]
    paths = {"state": (node.driver_state, "/run/simgpu"), "library": (bare.DRIVER / "libcuda.so.1", LIBRARY)}
    mounts = [{"name": name, "mountPath": str(inside)} for name, (_, inside) in paths.items()]
    side = container("side", command=HOLD) | {"volumeMounts": mounts}
    manifest = pod("both", container(command=HOLD, gpu_mem=1024), side, annotations=at(node, 1))
    manifest["spec"]["volumes"] = [{"name": name, "hostPath": {"path": str(on)}} for name, (on, _) in paths.items()]
    namespace.create(manifest)
    namespace.running("both")
    message = until_reported(namespace, "both", until_used(namespace, node, 0))
    assert f"card 0 ({node.cards[0].uuid})" in message
    assert "container side process" in message
    assert node.cards[1].uuid not in message
    assert condition(namespace, node)["status"] == "False"
