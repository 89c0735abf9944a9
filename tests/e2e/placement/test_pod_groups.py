"""Gangs by coscheduling's PodGroup, whose CRD is installed while the extender runs; and a gang among small pods."""

import logging
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cluster import wait
from cluster.cluster import GpuCluster
from extender.watch.watches import ABSENT_S
from tests.e2e.placement.test_gangs import DEADLINE_S, STARTED_S, Bound, all_cards, member, says
from tests.e2e.pod_namespace import PodNamespace, container, pod
from vgpu.domain import names

pytestmark = pytest.mark.e2e

CRD = Path(__file__).parent / "pod_group_crd.yaml"
LIFE_S = 8
HOLD_AFTER_S = 10
Document = dict[str, Any]

log = logging.getLogger(__name__)


@pytest.fixture(autouse=True, scope="module")
def pod_groups(cluster: GpuCluster) -> Iterator[None]:
    cluster.kubectl("apply", "-f", str(CRD))
    cluster.kubectl("wait", "--for=condition=Established", "--timeout=60s", "-f", str(CRD))
    yield
    cluster.kubectl("delete", "-f", str(CRD))


def create_group(namespace: PodNamespace, name: str, **spec: int) -> None:
    path = f"{names.COSCHEDULING_GROUPS_PATH.rpartition('/')[0]}/namespaces/{namespace.name}/podgroups"
    group = {"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup", "metadata": {"name": name}, "spec": spec}
    namespace.cluster.api.create(path, group)


def grouped(name: str, group: str, **share: int) -> Document:
    manifest = pod(name, **share)  # type: ignore[arg-type]
    manifest["metadata"]["labels"] = {names.POD_GROUP_LABEL: group}
    return manifest


def test_pods_of_a_pod_group_start_when_as_many_exist_as_its_min_member(namespace: PodNamespace) -> None:
    namespace.create(grouped("train-0", "train", gpu=1))
    says(namespace, "train-0", "PodGroup train", "does not exist, or cannot be read")
    create_group(namespace, "train", minMember=3)
    namespace.create(grouped("train-1", "train", gpu=1))
    namespace.until(
        lambda: any("2 exist" in event["message"] for event in namespace.extender_events("train-1")) or None,
        "the PodGroup is read",
        STARTED_S + ABSENT_S,  # the extender looks for the CRD from time to time
    )
    assert set(namespace.phases().values()) == {"Pending"}
    namespace.create(grouped("train-2", "train", gpu=1))
    namespace.running("train-0", "train-1", "train-2")
    listed = namespace.cluster.kubectl("get", "podgroups", "-n", namespace.name)
    assert "train" in listed


def test_the_timeout_of_a_pod_group_ends_its_plan(cluster: GpuCluster, namespace: PodNamespace) -> None:
    cards = all_cards(cluster)
    create_group(namespace, "late", minMember=cards, scheduleTimeoutSeconds=DEADLINE_S)
    for n in range(cards):
        manifest = grouped(f"late-{n}", "late", gpu=1)
        if n == 0:
            manifest["spec"]["nodeSelector"] = {"vgpu-test/no-such-label": "true"}
        namespace.create(manifest)
    says(namespace, "late-1", f"within {DEADLINE_S} s", "waits for: ", "late-0", "its cards are free again")
    namespace.create(pod("other", gpu=1))
    namespace.running("other")


def test_a_gang_of_all_cards_starts_among_small_pods_that_come_without_end(
    cluster: GpuCluster, namespace: PodNamespace
) -> None:
    """Small pods live for a few seconds, and others wait for their slices; at no moment are all cards free."""
    cards = all_cards(cluster)
    card = cluster.nodes[0].cards[0]
    half = (card.memory_mib - card.reserved_mib) // 2 // 256 * 256
    made = 0

    def small() -> None:
        nonlocal made
        manifest = pod(f"small-{made}", container(command=("sleep", str(LIFE_S + made % 7)), gpu_mem=half))
        manifest["spec"]["restartPolicy"] = "Never"
        namespace.create(manifest)
        made += 1

    with cluster.extender_with(gang_hold_after_s=str(HOLD_AFTER_S)):
        for _ in range(3 * cards):
            small()
        namespace.until(lambda: list(namespace.phases().values()).count("Running") >= cards or None, "small pods run")
        for n in range(cards):
            namespace.create(member(f"train-{n}", "train", cards, gpu=1))
        bound, began = Bound(namespace, cards), time.monotonic()
        while bound.count()["train"] < cards:
            waiting = sum(phase == "Pending" for name, phase in namespace.phases().items() if name.startswith("small"))
            for _ in range(cards - waiting):
                small()
            assert time.monotonic() - began < wait.allowed(STARTED_S), namespace.describe()
            time.sleep(1)
        log.info("a gang of %d whole after %.1f s, beside %d small pods", cards, time.monotonic() - began, made)
        # The gang itself may hear nothing of it: kube-scheduler need not ask for its pods between hold and plan.
        refused = [event for event in namespace.events() if "CardKeptForGang" in event["message"]]
        assert {event["involvedObject"]["name"].partition("-")[0] for event in refused} == {"small"}
