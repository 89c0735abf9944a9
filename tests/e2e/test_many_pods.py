"""Many pods at once: rows 6, 7, and what is refused by name: row 8."""

import time
from typing import Unpack

import pytest

from tests.e2e.pod_namespace import Document, Share, Space, container, pod
from vgpu import names
from vgpu.assignment import Grant

pytestmark = pytest.mark.e2e

PAUSE = {"image": "docker.io/local/pause:1", "command": ["/pause"]}


def small(name: str = "main", **share: Unpack[Share]) -> Document:
    """A container that only holds its share."""
    return container(name, **share) | PAUSE


def test_6_forty_equal_slice_counts_at_once_each_get_their_own(space: Space) -> None:
    wanted = {f"p{n}": 1 + n % 20 for n in range(40)}
    for name, cores in wanted.items():
        space.create(pod(name, gpu_mem=8192 - cores, gpu_cores=cores))
    space.running(*wanted, within_s=180)
    for name, cores in wanted.items():
        (grant,) = space.assignment(name).containers["main"]
        assert grant == Grant(grant.gpu, 8192 - cores, cores)
        (line,) = space.probe(name, "info")
        assert [(c["uuid"], c["total"]) for c in line["cuda"]] == [(grant.gpu, (8192 - cores) << 20)], name


def test_7_twice_the_capacity_runs_exactly_the_capacity(space: Space) -> None:
    capacity = sum(len(node.cards) for node in space.cluster.nodes) * 4
    for n in range(2 * capacity):
        space.create(pod(f"p{n}", small(gpu_mem=20480)))

    def counts() -> tuple[int, int]:
        phases = list(space.phases().values())
        return phases.count("Running"), phases.count("Pending")

    space.until(lambda: counts() == (capacity, capacity), f"{capacity} Running, the rest Pending", 180)
    time.sleep(5)
    assert counts() == (capacity, capacity)
    waiting = next(name for name, phase in space.phases().items() if phase == "Pending")
    told = space.until(
        lambda: [e for e in space.events(waiting) if e["reason"] == "CardInsufficientMemory"],
        "the reason, card by card",
    )
    assert "needs 20 GiB on 1 card; 127.0.0.2: card 0 CardInsufficientMemory (0 MiB, 100 % free)" in told[-1]["message"]
    first = next(name for name, phase in space.phases().items() if phase == "Running")
    started = time.monotonic()
    space.cluster.api.delete(f"{space.pods_path}/{first}")
    space.until(lambda: counts() == (capacity, capacity - 1), "another one starts", 10)
    assert time.monotonic() - started < 10


def refusals() -> dict[str, tuple[Document, str]]:
    limits = "spec.containers[main].resources.limits"
    forged = {names.ASSIGNMENT: '{"v":1,"containers":{"main":[{"gpu":"GPU-1","mem":8192}]}}'}
    return {
        "16Gi": (pod("p", gpu_mem="16Gi"), f"{limits}[vgpu.io/gpu-mem]"),
        "1e9": (pod("p", gpu_mem="1e9"), f"{limits}[vgpu.io/gpu-mem]"),
        "no cards": (pod("p", gpu_mem=1024, gpu=0), f"{limits}[vgpu.io/gpu]"),
        "cores 0": (pod("p", gpu_mem=1024, gpu_cores=0), f"{limits}[vgpu.io/gpu-cores]"),
        "cores 101": (pod("p", gpu_mem=1024, gpu_cores=101), f"{limits}[vgpu.io/gpu-cores]"),
        "unknown policy": (pod("p", annotations={names.NODE_POLICY: "pack"}, gpu_mem=1), "vgpu.io/node-policy"),
        "forged assignment": (pod("p", annotations=forged, gpu_mem=8192), "vgpu.io/assignment"),
        "bare slice": (pod("p", container(limits={names.SLICE: "4"})), "vgpu.io/slice"),
        "slice beside a share": (pod("p", container(gpu_mem=1024, limits={names.SLICE: "1"})), "vgpu.io/slice"),
        # these two are refused by the API server itself, in its own words
        "negative": (pod("p", gpu_mem="-1"), "vgpu.io/gpu-mem"),
        "fraction": (pod("p", gpu_mem="1500m"), "vgpu.io/gpu-mem"),
    }


@pytest.mark.parametrize("case", refusals())
def test_8_what_makes_no_sense_is_refused_by_name(space: Space, case: str) -> None:
    manifest, words = refusals()[case]
    assert words in space.refused(manifest)
    assert not space.all()


def test_8_a_forged_assignment_on_a_plain_pod_counts_nothing(space: Space) -> None:
    forged = '{"v":1,"containers":{"main":[{"gpu":"%s","mem":81920,"whole":true}]}}'
    uuid = space.cluster.nodes[0].cards[0].uuid
    assert "vgpu.io/assignment" in space.refused(pod("p", container(), annotations={names.ASSIGNMENT: forged % uuid}))


def test_8_three_hundred_containers_are_counted_right(space: Space) -> None:
    uuid = space.cluster.nodes[0].cards[0].uuid
    never = {"image": "docker.io/local/none:1", "imagePullPolicy": "Never"}  # they need not run to be counted
    many = [container(f"c{n}", gpu_mem=256) | never for n in range(300)]
    space.create(pod("many", *many, annotations={names.USE_GPU_UUID: uuid}))
    space.until(lambda: space.get("many")["spec"].get("nodeName"), "300 containers are bound")
    assert len(space.assignment("many").containers) == 300
    space.create(pod("fits", small(gpu_mem=20 * 256), annotations={names.USE_GPU_UUID: uuid}))
    space.create(pod("late", small(gpu_mem=256), annotations={names.USE_GPU_UUID: uuid}))
    space.until(lambda: space.get("fits")["spec"].get("nodeName"), "what is left is given out")
    told = space.until(lambda: space.told("late"), "no more")
    assert "card 0 CardInsufficientMemory (0 MiB" in told[-1]["message"]
