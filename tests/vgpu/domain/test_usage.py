"""How much of a node's cards pods use."""

from tests.strategies import SLICE_MIB, card, container, pod
from vgpu.domain.asks import request
from vgpu.domain.cards.device import Node
from vgpu.domain.cards.share import Usage
from vgpu.domain.grants import usage
from vgpu.domain.grants.assignment import Assignment, Grant
from vgpu.domain.identifiers import CardUuid, ContainerName, NodeName


def test_usage_is_the_larger_of_init_and_app_phase_and_sidecars_count_in_both() -> None:
    obj = pod(
        container("app", gpu_mem=512, gpu_cores=20),
        container("other", gpu_mem=256, gpu_cores=10),
        init=(
            container("side", gpu_mem=256, gpu_cores=5) | {"restartPolicy": "Always"},
            container("init", gpu_mem=512, gpu_cores=80),
        ),
    )
    pod_request = request.parse(obj).request
    assert pod_request is not None
    chosen = Assignment({c.name: (Grant(CardUuid("GPU-1"), c.memory_mib, c.cores),) for c in pod_request.containers})
    used = usage.of_pod(chosen, pod_request, SLICE_MIB, {})
    assert used == {"GPU-1": Usage(slices=4, memory_mib=1024, cores=85, shares=3)}


def test_a_nodes_usage_is_the_sum_over_its_pods_and_a_whole_card_counts_all_its_slices() -> None:
    node = Node(NodeName("n1"), SLICE_MIB, (card(0), card(1)))
    share, whole = (request.parse(pod(container(**amounts))).request for amounts in ({"gpu_mem": 300}, {"gpu": 1}))
    assert share is not None
    assert whole is not None
    held = Assignment({ContainerName("main"): (Grant(CardUuid("GPU-0"), 300),)})
    taken = usage.on_node(
        node,
        [
            (share, held),
            (share, held),
            (whole, Assignment({ContainerName("main"): (Grant(CardUuid("GPU-1"), 2048, whole=True),)})),
        ],
    )
    assert taken == {
        "GPU-0": Usage(slices=4, memory_mib=600, shares=2),
        "GPU-1": Usage(slices=8, memory_mib=2048, cores=100, wholes=1),
    }
