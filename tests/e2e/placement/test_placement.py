"""On which node and cards pods are placed."""

import pytest

from cluster.cluster import GpuCluster
from tests.e2e.pod_namespace import PodNamespace, container, pod
from vgpu.domain import names
from vgpu.domain.grants.assignment import Grant
from vgpu.domain.identifiers import ContainerName

pytestmark = pytest.mark.e2e

GIB = 1024
# LOAD is on the cards: (node, card, GiB). EXPECTED: node and card of a pod of 4 GiB, by node policy and card policy.
EXPECTED = {
    ("binpack", "binpack"): (0, 0),
    ("binpack", "spread"): (0, 2),
    ("spread", "binpack"): (1, 3),
    ("spread", "spread"): (1, 0),
    ("power", "power"): (0, 0),
    ("fgd", "topology"): (1, 3),  # no node is fragmented more, so the first in the fixed order; there the fullest card
}
LOAD = ((0, 0, 30), (0, 1, 10), (1, 3, 5))


@pytest.fixture
def loaded(namespace: PodNamespace) -> PodNamespace:
    for node, card, gib in LOAD:
        uuid = namespace.cluster.nodes[node].cards[card].uuid
        manifest = pod(f"load-{node}-{card}", annotations={names.USE_GPU_UUID: uuid}, gpu_mem=gib * GIB)
        namespace.create(manifest)
    namespace.running(*(f"load-{node}-{card}" for node, card, _ in LOAD))
    return namespace


def placed_on(namespace: PodNamespace, name: str) -> tuple[int, int]:
    """Index of a pod's node, and of its card."""
    (item,) = namespace.running(name)
    (card,) = namespace.assignment(name).gpus()
    node = next(n for n, node in enumerate(namespace.cluster.nodes) if node.name == item["spec"]["nodeName"])
    return node, next(c.index for c in namespace.cluster.nodes[node].cards if c.uuid == card)


@pytest.mark.parametrize(("node_policy", "gpu_policy"), EXPECTED, ids=lambda policy: policy)
def test_policies_of_annotations(loaded: PodNamespace, node_policy: str, gpu_policy: str) -> None:
    annotations = {names.NODE_POLICY: node_policy, names.GPU_POLICY: gpu_policy}
    loaded.create(pod("wish", annotations=annotations, gpu_mem=4 * GIB))
    assert placed_on(loaded, "wish") == EXPECTED[node_policy, gpu_policy]


@pytest.mark.parametrize(("node_policy", "gpu_policy"), EXPECTED, ids=lambda policy: policy)
def test_policies_of_the_extenders_settings(loaded: PodNamespace, node_policy: str, gpu_policy: str) -> None:
    with loaded.cluster.extender_with(node_policy=node_policy, gpu_policy=gpu_policy):
        loaded.create(pod("no-wish", gpu_mem=4 * GIB))
        assert placed_on(loaded, "no-wish") == EXPECTED[node_policy, gpu_policy]


def test_shares_without_a_policy_fill_one_card_before_the_next(namespace: PodNamespace) -> None:
    found = []
    with namespace.cluster.extender_with():  # one that has learned from no other test's pods
        for name in ("first", "second", "third"):
            namespace.create(pod(name, gpu_mem=8 * GIB))
            found.append(placed_on(namespace, name))
    assert len(set(found)) == 1


def test_several_cards_divide_the_total_evenly(namespace: PodNamespace) -> None:
    namespace.create(pod("three", gpu_mem=18432, gpu_cores=240, gpu=3))
    (item,) = namespace.running("three")
    grants = namespace.assignment("three").containers[ContainerName("main")]
    assert [(grant.memory_mib, grant.cores) for grant in grants] == [(6144, 80)] * 3
    node = next(node for node in namespace.cluster.nodes if node.name == item["spec"]["nodeName"])
    assert {grant.gpu for grant in grants} < {card.uuid for card in node.cards}
    (line,) = namespace.probe("three", "info")
    assert [(card["uuid"], card["total"]) for card in line["cuda"]] == [(grant.gpu, 6144 << 20) for grant in grants]


def test_an_amount_that_does_not_divide_evenly_is_refused(namespace: PodNamespace) -> None:
    message = namespace.refused(pod("odd", gpu_mem=18432, gpu_cores=130, gpu=3))
    assert "spec.containers[main].resources.limits[vgpu.io/gpu-cores]" in message
    assert "does not divide evenly over 3 GPUs" in message


def test_whole_cards_and_shares_are_never_on_one_card(cluster: GpuCluster, namespace: PodNamespace) -> None:
    cards = len(cluster.nodes) * len(cluster.nodes[0].cards)
    namespace.create(pod("share", gpu_mem=GIB))
    namespace.running("share")
    for n in range(cards):
        namespace.create(pod(f"whole-{n}", gpu=1))
    running = namespace.until(
        lambda: (
            found
            if len(found := [n for n in namespace.phases() if n != "share" and n in ready(namespace)]) == cards - 1
            else None
        ),
        "every empty card is held whole",
    )
    (shared,) = namespace.assignment("share").gpus()
    grants = [grant for name in running for grant in namespace.assignment(name).containers[ContainerName("main")]]
    assert shared not in {grant.gpu for grant in grants}
    assert len({grant.gpu for grant in grants}) == cards - 1
    assert grants[0] == Grant(grants[0].gpu, cluster.nodes[0].cards[0].memory_mib, None, whole=True)
    namespace.create(pod("late", gpu_mem=GIB))
    namespace.running("late")
    assert namespace.assignment("late").gpus() == {shared}
    (waiting,) = set(namespace.phases()) - set(running) - {"share", "late"}
    namespace.until(
        lambda: any("CardInUse" in e["message"] for e in namespace.events(waiting)), "an event with the reason"
    )


def ready(namespace: PodNamespace) -> set[str]:
    return {name for name, phase in namespace.phases().items() if phase == "Running"}


def test_a_container_with_a_whole_card_sees_all_its_memory(namespace: PodNamespace) -> None:
    namespace.create(pod("whole", container(limits={names.GPU: "1"})))
    namespace.running("whole")
    (line,) = namespace.probe("whole", "info")
    assert line["cuda"][0]["total"] == 81920 << 20
