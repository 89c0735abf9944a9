"""Many pods at once, and requests that are refused by the name of their field."""

import time
from typing import Unpack

import pytest

from tests.e2e.pod_namespace import Document, PodNamespace, Share, container, held_slices, pod
from vgpu.domain import names
from vgpu.domain.grants.assignment import Grant
from vgpu.domain.identifiers import ContainerName

pytestmark = pytest.mark.e2e

PAUSE = {"image": "docker.io/local/pause:1", "command": ["/pause"]}


def small(name: str = "main", **share: Unpack[Share]) -> Document:
    """A container that holds its share and does nothing."""
    return container(name, **share) | PAUSE


def test_forty_pods_with_equal_slice_counts_each_get_their_own_limits(namespace: PodNamespace) -> None:
    wanted = {f"p{n}": 1 + n % 20 for n in range(40)}
    for name, cores in wanted.items():
        namespace.create(pod(name, gpu_mem=8192 - cores, gpu_cores=cores))
    namespace.running(*wanted, within_s=180)
    for name, cores in wanted.items():
        (grant,) = namespace.assignment(name).containers[ContainerName("main")]
        assert grant == Grant(grant.gpu, 8192 - cores, cores)
        (line,) = namespace.probe(name, "info")
        assert [(c["uuid"], c["total"]) for c in line["cuda"]] == [(grant.gpu, (8192 - cores) << 20)], name


def test_of_twice_the_capacity_exactly_the_capacity_runs(namespace: PodNamespace) -> None:
    capacity = sum(len(node.cards) for node in namespace.cluster.nodes) * 4
    for n in range(2 * capacity):
        namespace.create(pod(f"p{n}", small(gpu_mem=20480)))

    def counts() -> tuple[int, int]:
        phases = list(namespace.phases().values())
        return phases.count("Running"), phases.count("Pending")

    namespace.until(lambda: counts() == (capacity, capacity), f"{capacity} Running, the rest Pending", 180)
    time.sleep(5)
    assert counts() == (capacity, capacity)
    waiting = next(name for name, phase in namespace.phases().items() if phase == "Pending")
    events = namespace.until(
        lambda: [e for e in namespace.events(waiting) if e["reason"] == "CardInsufficientMemory"],
        "the reason, card by card",
    )
    assert (
        "needs 20 GiB on 1 card; 127.0.0.2: card 0 CardInsufficientMemory (0 MiB and 100 % of compute free)"
        in events[-1]["message"]
    )
    first = next(name for name, phase in namespace.phases().items() if phase == "Running")
    namespace.cluster.api.delete(f"{namespace.pods_path}/{first}")
    namespace.until(lambda: counts() == (capacity, capacity - 1), "another one starts", 10)


def refusals() -> dict[str, tuple[Document, str]]:
    limits = "spec.containers[main].resources.limits"
    return {
        "16Gi": (pod("p", gpu_mem="16Gi"), f"{limits}[vgpu.io/gpu-mem]"),
        "1e9": (pod("p", gpu_mem="1e9"), f"{limits}[vgpu.io/gpu-mem]"),
        "no cards": (pod("p", gpu_mem=1024, gpu=0), f"{limits}[vgpu.io/gpu]"),
        "cores 0": (pod("p", gpu_mem=1024, gpu_cores=0), f"{limits}[vgpu.io/gpu-cores]"),
        "cores 101": (pod("p", gpu_mem=1024, gpu_cores=101), f"{limits}[vgpu.io/gpu-cores]"),
        "unknown policy": (pod("p", annotations={names.NODE_POLICY: "pack"}, gpu_mem=1), "vgpu.io/node-policy"),
        "bare slice": (pod("p", container(limits={names.SLICE: "4"})), "vgpu.io/slice"),
        "slice beside a share": (pod("p", container(gpu_mem=1024, limits={names.SLICE: "1"})), "vgpu.io/slice"),
        # The API server itself refuses a negative amount and a fraction.
        "negative": (pod("p", gpu_mem="-1"), "vgpu.io/gpu-mem"),
        "fraction": (pod("p", gpu_mem="1500m"), "vgpu.io/gpu-mem"),
    }


@pytest.mark.parametrize("case", refusals())
def test_an_invalid_request_is_refused_by_the_name_of_its_field(namespace: PodNamespace, case: str) -> None:
    manifest, words = refusals()[case]
    assert words in namespace.refused(manifest)
    assert not namespace.all()


def test_an_assignment_on_a_pod_without_a_share_holds_nothing(namespace: PodNamespace) -> None:
    """It is removed at the creation (ADR 145): the pod runs, and its card is as free as before."""
    forged = '{"v":1,"containers":{"main":[{"gpu":"%s","mem":81920,"whole":true}]}}'
    uuid = namespace.cluster.nodes[0].cards[0].uuid
    namespace.create(pod("p", container(), annotations={names.ASSIGNMENT: forged % uuid}))
    (running,) = namespace.running("p")
    assert names.ASSIGNMENT not in running["metadata"].get("annotations", {})
    assert held_slices(namespace.cluster) == {}
    namespace.create(pod("whole", gpu=1, annotations={names.USE_GPU_UUID: uuid}))
    namespace.running("whole")


def test_three_hundred_containers_are_accounted_exactly(namespace: PodNamespace) -> None:
    uuid = namespace.cluster.nodes[0].cards[0].uuid
    never = {
        "image": "docker.io/local/none:1",
        "imagePullPolicy": "Never",
    }  # an image that is missing: a container is accounted before it runs
    many = [container(f"c{n}", gpu_mem=256) | never for n in range(30)]
    pods = [f"many{n}" for n in range(10)]
    for name in pods:
        namespace.create(pod(name, *many, annotations={names.USE_GPU_UUID: uuid}))
    for name in pods:
        namespace.until(lambda: namespace.get(name)["spec"].get("nodeName"), "the pod is bound")  # noqa: B023 - at once
        assert len(namespace.assignment(name).containers) == 30
    namespace.create(pod("fits", small(gpu_mem=20 * 256), annotations={names.USE_GPU_UUID: uuid}))
    namespace.create(pod("late", small(gpu_mem=256), annotations={names.USE_GPU_UUID: uuid}))
    namespace.until(lambda: namespace.get("fits")["spec"].get("nodeName"), "the rest of the card is bound")
    events = namespace.until(lambda: namespace.extender_events("late"), "the refusal of the last pod")
    assert "card 0 CardInsufficientMemory (0 MiB" in events[-1]["message"]
