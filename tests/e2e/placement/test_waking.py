"""Waiting pods start when a change that kube-scheduler does not see lets them in."""

import time

import pytest

from cluster.cluster import GpuCluster
from extender.effects.waker import CONDITION
from tests.e2e.pod_namespace import Document, PodNamespace, pod
from vgpu.domain import names

pytestmark = pytest.mark.e2e

BACKOFF_S = 12  # longer than kube-scheduler's back-off of at most 10 s: after it only an event wakes a refused pod


def waiting_for_a_cordoned_card(cluster: GpuCluster, namespace: PodNamespace) -> str:
    """Let a pod wait for a card of the first node; return the path of the node's GPUNode."""
    node = cluster.nodes[0]
    path, card = f"{names.GPUNODES_PATH}/{node.name}", node.cards[0].uuid
    cluster.api.patch(path, {"spec": {"cards": [{"uuid": card, "cordoned": True}]}})
    namespace.create(pod("p", annotations={names.USE_GPU_UUID: card}, gpu_mem=256))
    namespace.until(lambda: namespace.extender_events("p"), "the pod waits")
    time.sleep(BACKOFF_S)
    assert not namespace.get("p")["spec"].get("nodeName")
    return path


def is_woken_and_bound(namespace: PodNamespace, within_s: float) -> None:
    """Wait for the extender's condition, and for the Binding, which may come after kube-scheduler's next back-off."""
    namespace.until(lambda: CONDITION in conditions(namespace.get("p")), "the pod is woken", within_s)
    namespace.until(lambda: namespace.get("p")["spec"].get("nodeName"), "the pod is bound", BACKOFF_S)


def conditions(pod: Document) -> set[str]:
    return {condition["type"] for condition in pod["status"].get("conditions") or ()}


def test_an_uncordoned_card_wakes_a_waiting_pod_within_2_s(cluster: GpuCluster, namespace: PodNamespace) -> None:
    path = waiting_for_a_cordoned_card(cluster, namespace)
    cluster.api.patch(path, {"spec": {"cards": []}})
    is_woken_and_bound(namespace, within_s=2)


def test_a_deleted_gpunode_comes_back_and_wakes_a_waiting_pod(cluster: GpuCluster, namespace: PodNamespace) -> None:
    path = waiting_for_a_cordoned_card(cluster, namespace)
    cluster.api.delete(path)
    is_woken_and_bound(namespace, within_s=4)
    assert cluster.api.get(path)["status"]["cards"]
