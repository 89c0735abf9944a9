"""Faults of one card on the real kubelet: only its slices leave, they come back, and Events say what happened."""

import dataclasses
import json

import pytest

from cluster import nodes
from simgpu import state_directory
from tests.e2e.node.test_node_files import at
from tests.e2e.pod_namespace import PodNamespace, container, pod
from vgpu.domain import names

pytestmark = pytest.mark.e2e

HOLD = ("gpuprobe", "alloc", "64", "--hold", "0")
RECOVERED_S = 60  # three polls of 5 s, and the kubelet's status period


def reasons(namespace: PodNamespace, node: nodes.ClusterNode) -> list[str]:
    """Why cards are unhealthy, in the order of the cards."""
    status = namespace.cluster.api.get(f"{names.GPUNODES_PATH}/{node.name}")["status"]
    return [card["reason"] for card in status["cards"]]


def slices(namespace: PodNamespace, node: nodes.ClusterNode) -> int:
    """How many slices the kubelet offers."""
    status = namespace.cluster.api.get(f"/api/v1/nodes/{node.name}")["status"]
    return int(status["allocatable"][names.SLICE].replace("k", "000"))


def change(node: nodes.ClusterNode, number: int, **fields: object) -> None:
    cards = [dataclasses.replace(card, **fields) if card.index == number else card for card in node.cards]  # type: ignore[arg-type]
    state_directory.write_cards(node.driver_state, tuple(cards))


def until_only(namespace: PodNamespace, node: nodes.ClusterNode, number: int, reason: str, all_slices: int) -> None:
    """Wait until a card is unhealthy, and assert that the others are healthy."""
    wanted = [reason if index == number else "" for index in range(len(node.cards))]
    namespace.until(lambda: reasons(namespace, node) == wanted, f"{wanted}", 20)
    per_card = all_slices // len(node.cards)
    namespace.until(lambda: slices(namespace, node) == all_slices - per_card, "the card's slices leave", 20)


def until_recovered(
    namespace: PodNamespace, node: nodes.ClusterNode, all_slices: int, within_s: float = RECOVERED_S
) -> None:
    namespace.until(lambda: not any(reasons(namespace, node)), "every card is healthy", within_s)
    namespace.until(lambda: slices(namespace, node) == all_slices, "the slices are back", 20)


def event(namespace: PodNamespace, name: str) -> str:
    """Wait for the Event about a pod's card; return its message."""
    found = namespace.until(
        lambda: [e for e in namespace.extender_events(name) if e["reason"] == names.CARD_UNHEALTHY], "an Event", 20
    )
    return str(found[0]["message"])


def test_an_xid_of_the_application_marks_nothing_and_one_of_the_card_only_this_card(namespace: PodNamespace) -> None:
    node = namespace.cluster.nodes[0]
    before = slices(namespace, node)
    for number, name in enumerate(("hit", "beside")):
        namespace.create(pod(name, container(command=HOLD, gpu_mem=1024), annotations=at(node, number)))
    namespace.running("hit", "beside")
    state_directory.inject_xid(node.driver_state, node.cards[1].uuid, 13)
    state_directory.inject_xid(node.driver_state, node.cards[0].uuid, 79)
    until_only(namespace, node, 0, "Xid79", before)
    message = event(namespace, "hit")
    assert message.startswith(f"card 0 ({node.cards[0].uuid}) is unhealthy: Xid79 (the GPU has fallen off the bus).")
    assert namespace.extender_events("beside") == []
    assert namespace.phases() == {"hit": "Running", "beside": "Running"}
    until_recovered(namespace, node, before, 60 + RECOVERED_S)


@pytest.mark.parametrize(("fault", "reason"), [(999, "Unknown"), (15, "GpuIsLost")])
def test_an_nvml_error_of_one_card_affects_no_other(namespace: PodNamespace, fault: int, reason: str) -> None:
    node = namespace.cluster.nodes[0]
    before = slices(namespace, node)
    state_directory.inject_faults(node.driver_state, (f"*@{node.cards[2].uuid}", fault))
    until_only(namespace, node, 2, reason, before)
    state_directory.inject_faults(node.driver_state)
    until_recovered(namespace, node, before)


def test_a_fault_that_stays_can_be_acknowledged(namespace: PodNamespace) -> None:
    node = namespace.cluster.nodes[0]
    before = slices(namespace, node)
    change(node, 3, recovery=1)
    until_only(namespace, node, 3, "RecoveryNeeded", before)
    path = f"{names.GPUNODES_PATH}/{node.name}"
    cards = [{"uuid": node.cards[3].uuid, "acknowledgedFault": "RecoveryNeeded"}]
    namespace.cluster.kubectl(
        "patch", "gpunode", node.name, "--type=merge", "-p", json.dumps({"spec": {"cards": cards}})
    )
    until_recovered(namespace, node, before, 20)
    change(node, 3, recovery=0)
    namespace.cluster.kubectl("patch", "gpunode", node.name, "--type=merge", "-p", json.dumps({"spec": {"cards": []}}))
    assert "cards" in namespace.cluster.api.get(path)["spec"]


def test_after_a_reload_of_the_driver_all_cards_are_back(namespace: PodNamespace) -> None:
    node = namespace.cluster.nodes[0]
    before = slices(namespace, node)
    namespace.create(pod("holds", container(command=HOLD, gpu_mem=1024), annotations=at(node)))
    namespace.running("holds")
    state_directory.reload_driver(node.driver_state)
    state_directory.inject_xid(node.driver_state, node.cards[1].uuid, 79)
    namespace.until(lambda: reasons(namespace, node)[1] == "Xid79", "events arrive after the reload", 30)
    until_recovered(namespace, node, before, 60 + RECOVERED_S)
    assert namespace.phases() == {"holds": "Running"}
