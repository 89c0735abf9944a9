"""NVIDIA's device plugin, or what stands in for it, on another node and on the node of ours."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest

from cluster import nodes
from cluster.programs import binaries
from tests.e2e.limits.test_limits import assert_total_memory
from tests.e2e.limits.test_uninvited import HOLD, until_reported, until_used
from tests.e2e.node.test_node_files import at
from tests.e2e.nvidia_plugin import RESOURCE
from tests.e2e.pod_namespace import FOREVER, Document, PodNamespace, container, pod
from vgpu.domain import names

pytestmark = pytest.mark.e2e

FAULT = "OfferedByAnotherPlugin"
WITHIN_S = 40  # three polls without a fault, 5 s apart


@contextmanager
def other_plugin(
    namespace: PodNamespace, node: nodes.ClusterNode, cards: int, options: Sequence[str] = ()
) -> Iterator[None]:
    """The stand-in on a node, for its first cards."""
    uuids = [card.uuid for card in node.cards[:cards]]
    command = [sys.executable, "-m", "tests.e2e.nvidia_plugin", *options, *uuids]
    made = node.process("nvidia-plugin", command, {"PYTHONPATH": str(binaries.REPOSITORY)})
    made.start()
    try:
        namespace.until(lambda: allocatable(namespace, node) == str(cards), f"{node.name} offers {RESOURCE}")
        yield
    finally:
        made.stop()
        namespace.until(lambda: allocatable(namespace, node) == "0", f"{node.name} offers no {RESOURCE}", WITHIN_S)


def allocatable(namespace: PodNamespace, node: nodes.ClusterNode) -> str:
    status = namespace.cluster.api.get(f"/api/v1/nodes/{node.name}")["status"]
    return str(status["allocatable"].get(RESOURCE, "0"))


def faults(namespace: PodNamespace, node: nodes.ClusterNode) -> list[str]:
    """The fault of each card of a node, in its GPUNode."""
    cards = namespace.cluster.api.get(f"{names.GPUNODES_PATH}/{node.name}")["status"]["cards"]
    return [card.get("reason", "") for card in sorted(cards, key=lambda card: card["index"])]


def plain(name: str, command: tuple[str, ...] = FOREVER) -> Document:
    """A pod that asks NVIDIA's plugin for a card."""
    main = container(command=command)
    main["resources"] = {"limits": {RESOURCE: 1}}
    return pod(name, main)


def messages(namespace: PodNamespace, name: str, reason: str) -> list[str]:
    return [event["message"] for event in namespace.extender_events(name) if event["reason"] == reason]


def test_on_another_node_each_plugin_serves_its_own_pods(namespace: PodNamespace) -> None:
    cluster = namespace.cluster
    ours, theirs = cluster.nodes
    cluster.plugins[1].stop()
    cluster.kubectl("label", "node", theirs.name, "vgpu.io/enabled-")
    try:
        with other_plugin(namespace, theirs, 4):
            namespace.create(plain("whole"))
            namespace.create(pod("share", gpu_mem=8192))
            whole, share = namespace.running("whole", "share")
            assert (whole["spec"]["nodeName"], share["spec"]["nodeName"]) == (theirs.name, ours.name)
            assert whole["spec"]["schedulerName"] == "default-scheduler"
            assert_total_memory(namespace, "share", 8192)
            (line,) = namespace.probe("whole", "info")
            assert {card["uuid"] for card in line["cuda"]} < {card.uuid for card in theirs.cards}
            assert "nvidia.com/gpu" in namespace.refused(both())
            namespace.delete("whole")
    finally:
        cluster.kubectl("label", "node", theirs.name, "vgpu.io/enabled=true")
        cluster.plugins[1].start()


def both() -> Document:
    manifest = pod("both", gpu_mem=1024)
    manifest["spec"]["containers"][0]["resources"]["limits"][RESOURCE] = 1
    return manifest


def test_on_the_same_node_a_card_that_the_other_plugin_offers_is_closed(namespace: PodNamespace) -> None:
    """Running pods stay, and are told; a pod that the other plugin gives the card to is reported."""
    node = namespace.cluster.nodes[0]
    namespace.create(pod("holds", gpu_mem=8192, annotations=at(node, 0)))
    namespace.running("holds")
    with other_plugin(namespace, node, 1):
        namespace.until(lambda: faults(namespace, node) == [FAULT, "", "", ""], "the card is closed", WITHIN_S)
        (told,) = namespace.until(lambda: messages(namespace, "holds", names.CARD_UNHEALTHY), "an Event", WITHIN_S)
        assert f"card 0 ({node.cards[0].uuid}) is unhealthy: {FAULT}" in told
        assert "pods that ask the other plugin get the card beside this pod, without limits" in told
        namespace.create(pod("waits", gpu_mem=1024, annotations=at(node, 0)))
        namespace.until(lambda: "CardUnhealthy" in refusals(namespace, "waits"), "the reason of the pod that waits")
        namespace.create(pod("beside", gpu_mem=1024, annotations=at(node, 1)))
        namespace.running("beside", "holds")
        namespace.create(plain("whole", HOLD))
        reported = until_reported(namespace, "whole", until_used(namespace, node, 0))
        assert f"card 0 ({node.cards[0].uuid})" in reported
        namespace.delete("whole")
    namespace.until(lambda: faults(namespace, node) == [""] * 4, "the card is open again", WITHIN_S)
    namespace.running("waits")


def refusals(namespace: PodNamespace, name: str) -> str:
    return " ".join(event["message"] for event in namespace.extender_events(name))
