"""Waiting pods start when a change that kube-scheduler does not see lets them in."""

import time

import pytest

from cluster.cluster import Cluster
from tests.e2e.pod_namespace import PodNamespace, pod
from vgpu import names

pytestmark = pytest.mark.e2e

BACKOFF_S = 12  # longer than kube-scheduler's back-off: after it only an event wakes a refused pod


def waiting_for_a_cordoned_card(cluster: Cluster, namespace: PodNamespace) -> str:
    """Let a pod wait for a card of the first node; return the path of the node's GPUNode."""
    node = cluster.nodes[0]
    path, card = f"{names.GPUNODES_PATH}/{node.name}", node.cards[0].uuid
    cluster.api.patch(path, {"spec": {"cards": [{"uuid": card, "cordoned": True}]}})
    namespace.create(pod("p", annotations={names.USE_GPU_UUID: card}, gpu_mem=256))
    namespace.until(lambda: namespace.extender_events("p"), "the pod waits")
    time.sleep(BACKOFF_S)
    assert not namespace.get("p")["spec"].get("nodeName")
    return path


def test_an_uncordoned_card_takes_a_waiting_pod_within_2_s(cluster: Cluster, namespace: PodNamespace) -> None:
    path = waiting_for_a_cordoned_card(cluster, namespace)
    cluster.api.patch(path, {"spec": {"cards": []}})
    namespace.until(lambda: namespace.get("p")["spec"].get("nodeName"), "the pod is bound", within_s=2)


def test_a_deleted_gpunode_comes_back_and_takes_a_waiting_pod(cluster: Cluster, namespace: PodNamespace) -> None:
    path = waiting_for_a_cordoned_card(cluster, namespace)
    cluster.api.delete(path)
    namespace.until(lambda: namespace.get("p")["spec"].get("nodeName"), "the pod is bound", within_s=4)
    assert cluster.api.get(path)["status"]["cards"]
