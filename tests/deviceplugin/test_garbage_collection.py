"""Which allocations expire, and what is removed with them."""

import asyncio
from dataclasses import replace

import pytest

from deviceplugin import garbage_collection
from deviceplugin.garbage_collection import GarbageCollector
from deviceplugin.kubelet.messages import Listing
from tests.deviceplugin.plugin_parts import IDS, PluginParts, share
from tests.vgpu.node.builders import allocation, bound, slices
from vgpu.domain import names
from vgpu.domain.identifiers import DEFAULT_NAMESPACE, ContainerName, PodUid

POD = bound("p")
ANY = allocation(slices(0, 1, 2), POD)
LISTED = {POD.key: {ContainerName("main"): {names.SLICE: slices(0, 2)}}}


@pytest.mark.parametrize(
    ("uids", "listings", "age_s", "is_expired"),
    [
        ([], [{}, {}], 601, True),
        ([], [{}, {}], 599, False),
        ([POD.uid], [{}, {}], 601, False),
        ([], [LISTED, {}], 601, False),
        ([], [{}, LISTED], 601, False),
        ([], [{(DEFAULT_NAMESPACE, "another"): LISTED[POD.key]}] * 2, 601, True),
    ],
)
def test_an_allocation_expires_when_its_pod_is_unknown_unlisted_and_old(
    uids: list[PodUid], listings: list[Listing], age_s: float, is_expired: bool
) -> None:
    assert garbage_collection.expired([ANY], uids, listings, 1000.0 + age_s) == ([ANY] if is_expired else [])


def test_an_allocation_that_was_proven_expires_within_minutes_of_its_pod() -> None:
    proven = replace(ANY, is_proven=True)
    assert garbage_collection.expired([proven], [], [{}, {}], 1061.0) == [proven]
    assert garbage_collection.expired([proven], [], [{}, {}], 1059.0) == []
    assert garbage_collection.expired([proven], [POD.uid], [{}, {}], 9999.0) == []
    assert garbage_collection.expired([proven], [], [{}, LISTED], 9999.0) == []


def test_an_allocation_that_processes_of_a_pod_deleted_by_force_use_does_not_expire() -> None:
    assert garbage_collection.expired([ANY], [], [{}, {}], 9999.0, lambda _: True) == []


def test_an_allocation_without_a_known_holder_expires_when_its_ids_are_unlisted() -> None:
    unknown = replace(ANY, holder=None)
    other = {(DEFAULT_NAMESPACE, "another"): LISTED[POD.key]}
    assert garbage_collection.expired([unknown], [], [{}, {}], 1700.0) == [unknown]
    assert garbage_collection.expired([unknown], [], [other, {}], 1700.0) == []


def collector_of(parts: PluginParts, synced: asyncio.Event) -> GarbageCollector:
    return GarbageCollector(
        parts.pods,
        parts.pod_resources,
        parts.allocations,
        parts.departed,
        parts.files,
        parts.groups,
        parts.library,
        synced=synced,
        wall_clock=lambda: parts.now,
    )


async def test_garbage_collection_needs_two_lists_and_a_synced_watch(parts: PluginParts) -> None:
    gone, here = share("gone", 10), share("here", 20)
    parts.pods.upsert(here)
    old = parts.allocate(IDS, gone, library="old")
    kept = parts.allocate(slices(1, 0), here, library=parts.library)
    parts.files.libraries.root.joinpath("old").mkdir()
    synced = asyncio.Event()
    parts.now = 1000.0 + 601
    collector = collector_of(parts, synced)

    await parts.list_once()
    collector.collect()
    await parts.list_once()
    collector.collect()
    assert parts.allocations.all() == (old, kept)
    synced.set()
    collector.collect()
    assert parts.allocations.all() == (old, kept), "two runs with one list count once"
    await parts.list_once()
    collector.collect()
    assert parts.allocations.all() == (kept,)
    assert [path.name for path in parts.files.allocations.iterdir()] == [kept.id]
    assert [path.name for path in parts.files.libraries.root.iterdir()] == [parts.library]


async def test_directories_with_a_torn_or_missing_record_are_removed_after_ten_minutes(parts: PluginParts) -> None:
    here = share("here", 20)
    parts.pods.upsert(here)
    kept = parts.allocate(slices(1, 0), here)
    for name in ("torn", "missing", "foreign"):
        parts.files.prepare(name)
    parts.files.allocations.joinpath("torn", "record.json").write_bytes(b"")
    parts.files.allocations.joinpath("foreign", "record.json").write_text('{"v":2}')
    parts.files.libraries.root.joinpath("foreigns").mkdir()
    synced = asyncio.Event()
    synced.set()
    collector = collector_of(parts, synced)

    async def left_at(now: float) -> set[str]:
        parts.now = now
        await parts.list_once()
        collector.collect()
        return {path.name for path in parts.files.allocations.iterdir()}

    await left_at(0)
    every = {kept.id, "torn", "missing", "foreign"}
    assert await left_at(60) == every
    assert await left_at(650) == every
    assert await left_at(670) == {kept.id, "foreign"}
    assert parts.files.libraries.root.joinpath("foreigns").exists(), "a record of another release may refer to it"


async def test_an_allocation_that_cannot_be_removed_is_removed_later(
    parts: PluginParts, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = parts.allocate(IDS, None)
    parts.now += old.created + 601
    synced = asyncio.Event()
    synced.set()
    collector = collector_of(parts, synced)
    await parts.list_once()
    collector.collect()
    with monkeypatch.context() as patch:
        patch.setattr(parts.files, "remove", _fail)
        await parts.list_once()
        collector.collect()
    assert parts.allocations.all() == (old,)
    await parts.list_once()
    collector.collect()
    assert not list(parts.files.allocations.iterdir())


def _fail(_: str) -> None:
    raise PermissionError


async def test_nothing_is_old_by_a_clock_that_was_set(parts: PluginParts) -> None:
    """The kubelet lists no init containers, and the watch may not show a pod yet that it starts."""
    parts.allocate(IDS, share("starting", 10), library=parts.library)
    synced = asyncio.Event()
    synced.set()
    collector = collector_of(parts, synced)
    for step_s in (60, 8_640_000, -8_640_000):
        parts.now += step_s
        await parts.list_once()
        collector.collect()
    assert len(parts.allocations.all()) == 1


def test_an_allocation_of_a_clock_that_was_ahead_expires() -> None:
    assert garbage_collection.expired([ANY], [], [{}, {}], ANY.created - 601) == [ANY]
    assert garbage_collection.expired([ANY], [], [{}, {}], ANY.created - 599) == []
