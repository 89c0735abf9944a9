"""Objects of hostile users: deep, of wrong types, too long. None ends the extender, none makes a card look free."""

import json
from typing import Any

import httpx
import pytest

from extender import app
from extender.state import objects
from extender.state.pod_reader import PodReader
from tests import strategies
from tests.extender.conftest import World
from vgpu.domain import names
from vgpu.domain.grants import assignment
from vgpu.domain.grants.assignment import Assignment, Grant
from vgpu.domain.grants.assignment_trust import Distrust
from vgpu.domain.identifiers import CardUuid, ContainerName


def deep(levels: int = 10_000) -> str:
    return '{"f:a":' * levels + "{}" + "}" * levels


def body(pod: dict[str, Any]) -> bytes:
    """A filter call whose pod has deep managedFields."""
    text = json.dumps({"Pod": pod, "NodeNames": ["n1"]})
    return text.replace('"metadata": {', '"metadata": {"managedFields": [' + deep() + "], ", 1).encode()


async def test_a_deep_pod_is_filtered_and_scored(world: World) -> None:
    pod = await world.create_pod()
    assert json.loads(await world.verbs.filter(body(pod)))["NodeNames"] == ["n1"]
    assert json.loads(await world.verbs.prioritize(body(pod))) == [{"Host": "n1", "Score": 10}]


async def test_a_call_that_is_too_deep_or_too_long_is_refused(world: World) -> None:
    transport = httpx.ASGITransport(app.app(world.verbs, world.watches, world.clock))
    async with httpx.AsyncClient(transport=transport, base_url="http://extender") as client:
        for path in ("/filter", "/prioritize", "/bind"):
            assert (await client.post(path, content=b"[" * 100_000)).status_code == 400
            assert (await client.post(path, content=b" " * (app.MAX_BODY + 1))).status_code == 413
        assert (await client.get("/healthz")).status_code == 200


def bound_pod() -> dict[str, Any]:
    chosen = Assignment({ContainerName("main"): (Grant(CardUuid("GPU-n1-0"), 1024),)})
    pod = strategies.pod(
        strategies.container(gpu_mem=1024), node="n1", phase="Running",
        annotations={names.ASSIGNMENT: assignment.encode(chosen)},
    )  # fmt: skip
    return strategies.admit(pod)


def test_a_pod_with_a_field_of_a_wrong_type_keeps_its_identity_and_is_not_trusted() -> None:
    pod = bound_pod()
    pod["spec"]["containers"][0]["resources"] = "many"
    read = PodReader().watched(json.dumps(pod).encode())
    assert isinstance(read, objects.WatchedPod)
    assert (read.uid, read.node, read.is_readable) == ("u1", "n1", False)
    assert read.parsed.problems
    assert isinstance(read.assignment, Distrust)


async def test_a_bound_pod_that_becomes_unreadable_still_holds_its_card(world: World) -> None:
    watch = world.watches.pods.handler
    pod = bound_pod()
    watch.upsert(PodReader().watched(json.dumps(pod).encode()))
    assert world.used_slices() == [4, 0]
    pod["spec"]["containers"] = "none"
    watch.upsert(PodReader().watched(json.dumps(pod).encode()))
    assert world.used_slices() == [4, 0]
    pod["status"]["phase"] = "Succeeded"
    watch.upsert(PodReader().watched(json.dumps(pod).encode()))
    assert world.used_slices() == [0, 0]


@pytest.mark.parametrize("slice_mib", [None, 0, -256, "256", 256.5])
def test_a_gpunode_with_cards_and_no_size_of_a_slice_is_skipped(slice_mib: object) -> None:
    card = {"uuid": "GPU-a", "index": 0, "model": "x", "memoryMiB": 81_920, "healthy": True, "heldSlices": 3}
    status = {"cards": [card], "sliceMiB": slice_mib}
    with pytest.raises(ValueError, match=r"status\.sliceMiB of GPUNode n1"):
        objects.gpunode(json.dumps({"metadata": {"name": "n1"}, "status": status}).encode())
    assert objects.gpunode(b'{"metadata": {"name": "n1"}}').node.cards == ()
