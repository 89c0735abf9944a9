"""Which remembered size makes room for another one."""

import json

import pytest

from extender.idle import sizes
from extender.idle.owners import ScalableOwner
from extender.idle.sizes import Sizes
from tests.extender.conftest import World
from vgpu.domain import names
from vgpu.domain.identifiers import Namespace

MAPS = f"/api/v1/namespaces/{names.NAMESPACE}/configmaps"


def size(namespace: str, at_ms: int) -> str:
    return json.dumps(
        {"kind": "Deployment", "namespace": namespace, "name": f"web-{at_ms}", "replicas": 2, "atMs": at_ms}
    )


def test_the_oldest_of_the_namespace_with_most_is_forgotten() -> None:
    known = {"quiet": size("quiet", 1), "second": size("crowd", 3), "first": size("crowd", 2)}
    assert sizes._forgotten(known) == "first"


def test_an_entry_that_cannot_be_read_is_forgotten_first() -> None:
    assert sizes._forgotten({"a": size("crowd", 2), "bad": "{", "b": size("crowd", 1)}) == "bad"


async def test_a_crowd_of_one_namespace_displaces_no_size_of_another(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sizes, "MAX_ENTRIES", 3)
    await world.client.post(MAPS, {"metadata": {"name": sizes.NAME}})
    kept = Sizes(world.client, Namespace(names.NAMESPACE))
    for at_ms, (namespace, name) in enumerate([("quiet", "api"), *(("crowd", f"web-{n}") for n in range(6))]):
        owner = ScalableOwner("apps/v1", "Deployment", Namespace(namespace), name, "uid")
        await kept.remember(owner, 2, at_ms)
    data = json.loads(await world.client.get(f"{MAPS}/{sizes.NAME}"))["data"]
    assert sorted(json.loads(text)["name"] for text in data.values()) == ["api", "web-4", "web-5"]
