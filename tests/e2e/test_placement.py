"""Where pods land: rows 3, 4 and 5."""

import pytest

from cluster.cluster import Cluster
from tests.e2e.pod_namespace import Space, container, pod
from vgpu import names
from vgpu.assignment import Grant

pytestmark = pytest.mark.e2e

GIB = 1024
# Where 4 GiB land: node 1 holds 30 GiB on card 0 and 10 on card 1, node 2 holds 5 on card 3.
LANDS = {
    ("binpack", "binpack"): (0, 0),
    ("binpack", "spread"): (0, 2),
    ("spread", "binpack"): (1, 3),
    ("spread", "spread"): (1, 0),
}
LOAD = ((0, 0, 30), (0, 1, 10), (1, 3, 5))


@pytest.fixture
def loaded(space: Space) -> Space:
    for node, card, gib in LOAD:
        uuid = space.cluster.nodes[node].cards[card].uuid
        manifest = pod(f"load-{node}-{card}", annotations={names.USE_GPU_UUID: uuid}, gpu_mem=gib * GIB)
        space.create(manifest)
    space.running(*(f"load-{node}-{card}" for node, card, _ in LOAD))
    return space


def landed(space: Space, name: str) -> tuple[int, int]:
    """The node's and the card's index."""
    (item,) = space.running(name)
    (card,) = space.assignment(name).gpus()
    node = next(n for n, node in enumerate(space.cluster.nodes) if node.name == item["spec"]["nodeName"])
    return node, next(c.index for c in space.cluster.nodes[node].cards if c.uuid == card)


@pytest.mark.parametrize(("node_policy", "gpu_policy"), LANDS, ids=lambda policy: policy)
def test_3_policies_by_annotation(loaded: Space, node_policy: str, gpu_policy: str) -> None:
    wishes = {names.NODE_POLICY: node_policy, names.GPU_POLICY: gpu_policy}
    loaded.create(pod("wish", annotations=wishes, gpu_mem=4 * GIB))
    assert landed(loaded, "wish") == LANDS[node_policy, gpu_policy]


@pytest.mark.parametrize(("node_policy", "gpu_policy"), LANDS, ids=lambda policy: policy)
def test_3_policies_by_setting(loaded: Space, node_policy: str, gpu_policy: str) -> None:
    with loaded.cluster.extender_with(node_policy=node_policy, gpu_policy=gpu_policy):
        loaded.create(pod("no-wish", gpu_mem=4 * GIB))
        assert landed(loaded, "no-wish") == LANDS[node_policy, gpu_policy]


def test_4_several_cards_share_the_total_evenly(space: Space) -> None:
    space.create(pod("three", gpu_mem=18432, gpu_cores=240, gpu=3))
    (item,) = space.running("three")
    grants = space.assignment("three").containers["main"]
    assert [(grant.memory_mib, grant.cores) for grant in grants] == [(6144, 80)] * 3
    node = next(node for node in space.cluster.nodes if node.name == item["spec"]["nodeName"])
    assert {grant.gpu for grant in grants} < {card.uuid for card in node.cards}
    (line,) = space.probe("three", "info")
    assert [(card["uuid"], card["total"]) for card in line["cuda"]] == [(grant.gpu, 6144 << 20) for grant in grants]


def test_4_what_does_not_divide_is_refused_with_the_reason(space: Space) -> None:
    said = space.refused(pod("odd", gpu_mem=18432, gpu_cores=130, gpu=3))
    assert "spec.containers[main].resources.limits[vgpu.io/gpu-cores]" in said
    assert "does not divide evenly over 3 GPUs" in said


def test_5_whole_cards_and_shares_never_meet(cluster: Cluster, space: Space) -> None:
    cards = len(cluster.nodes) * len(cluster.nodes[0].cards)
    space.create(pod("share", gpu_mem=GIB))
    space.running("share")
    for n in range(cards):
        space.create(pod(f"whole-{n}", gpu=1))
    running = space.until(
        lambda: (
            found
            if len(found := [n for n in space.phases() if n != "share" and n in ready(space)]) == cards - 1
            else None
        ),
        "every empty card is held whole",
    )
    (shared,) = space.assignment("share").gpus()
    held = [grant for name in running for grant in space.assignment(name).containers["main"]]
    assert shared not in {grant.gpu for grant in held}
    assert len({grant.gpu for grant in held}) == cards - 1
    assert held[0] == Grant(held[0].gpu, cluster.nodes[0].cards[0].memory_mib, None, whole=True)
    space.create(pod("late", gpu_mem=GIB))
    space.running("late")
    assert space.assignment("late").gpus() == {shared}
    (waiting,) = set(space.phases()) - set(running) - {"share", "late"}
    space.until(lambda: any("CardInUse" in e["message"] for e in space.events(waiting)), "the reason is told")


def ready(space: Space) -> set[str]:
    return {name for name, phase in space.phases().items() if phase == "Running"}


def test_5_a_container_that_holds_a_card_whole_sees_all_of_it(space: Space) -> None:
    space.create(pod("whole", container(limits={names.GPU: "1"})))
    space.running("whole")
    (line,) = space.probe("whole", "info")
    assert line["cuda"][0]["total"] == 81920 << 20
