"""The versioned object store of the simulated API server."""

import asyncio
import copy
import itertools
import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vgpu.simulator.api import selectors, server, watch
from vgpu.simulator.api.cluster import MAX_EVENTS
from vgpu.simulator.api.resources import EVENTS, GPUNODES, PODS, Target
from vgpu.simulator.api.store import Store, TooOld

NAMES = st.sampled_from(["a", "b", "c"])
WRITES = st.lists(st.tuples(st.booleans(), NAMES, st.integers(0, 2)), max_size=30)


def apply(store: Store, write: tuple[bool, str, int]) -> None:
    put, name, colour = write
    if put:
        metadata = {"name": name, "namespace": "x", "labels": {"colour": str(colour)}}
        store.put(PODS.name, ("x", name), {"metadata": metadata})
    elif store.get(PODS.name, ("x", name)) is not None:
        store.remove(PODS.name, ("x", name))


@given(WRITES)
def test_a_list_at_an_old_version_is_the_list_of_that_time(writes: list[tuple[bool, str, int]]) -> None:
    store = Store()
    past = {store.version: copy.deepcopy(store.objects(PODS.name))}
    for write in writes:
        apply(store, write)
        store.put(GPUNODES.name, ("", "other"), {"metadata": {"name": "other"}})
        past[store.version] = copy.deepcopy(store.objects(PODS.name))
    for version, objects in past.items():
        assert store.at(PODS.name, version) == objects


@given(WRITES, WRITES, st.sampled_from(["", "colour=1", "colour!=1", "colour in (0,2)", "!colour"]))
def test_a_list_and_its_later_events_make_the_later_list(
    before: list[tuple[bool, str, int]], after: list[tuple[bool, str, int]], selector: str
) -> None:
    store, matches = Store(), selectors.parse(PODS, selector)
    for write in before:
        apply(store, write)
    seen = {obj["metadata"]["name"]: obj for obj in store.objects(PODS.name) if matches(obj)}
    start = store.version
    for write in after:
        apply(store, write)
    request = watch.WatchRequest(Target(PODS), matches, start, bookmarks=False, initial_end=False, timeout_s=1)
    for change in store.since(PODS.name, start):
        match watch.seen(change, request):
            case "ADDED", obj:
                assert seen.setdefault(obj["metadata"]["name"], obj) is obj
            case "MODIFIED", obj:
                assert obj["metadata"]["name"] in seen
                seen[obj["metadata"]["name"]] = obj
            case "DELETED", obj:
                del seen[obj["metadata"]["name"]]
    assert seen == {obj["metadata"]["name"]: obj for obj in store.objects(PODS.name) if matches(obj)}


def test_the_log_is_bounded_and_a_forgotten_version_is_an_error() -> None:
    store = Store(history=5)
    for n in range(20):
        apply(store, (True, "a", n))
    assert [change.version for change in store.since(PODS.name, store.version - 5)] == list(range(17, 22))
    with pytest.raises(TooOld):
        store.since(PODS.name, 3)


async def test_the_events_are_the_last_thousand() -> None:
    """The API server keeps them for an hour."""
    numbers = itertools.count()
    cluster = server.make_cluster(lambda: datetime.now(UTC), lambda: f"uid-{next(numbers)}")
    for n in range(MAX_EVENTS + 5):
        await cluster.create(Target(EVENTS, "default"), {"metadata": {"name": f"event-{n}"}})
    kept = {event["metadata"]["name"] for event in cluster.store.objects(EVENTS.name)}
    assert kept == {f"event-{n}" for n in range(5, MAX_EVENTS + 5)}


def test_a_version_of_a_former_server_is_too_old() -> None:
    """A client must list again after a restart of the server, instead of waiting until versions catch up."""
    with pytest.raises(TooOld):
        Store().since(PODS.name, 500)


async def test_waiting_ends_with_the_next_change_of_that_resource_only() -> None:
    store = Store()
    waiting = asyncio.create_task(store.wait(PODS.name, store.version, 30))
    await asyncio.sleep(0)
    store.put(GPUNODES.name, ("", "n"), {"metadata": {"name": "n"}})
    await asyncio.sleep(0.01)
    assert not waiting.done()
    apply(store, (True, "a", 1))
    await asyncio.wait_for(waiting, 10)


async def test_waiting_for_a_past_change_ends_at_once() -> None:
    store = Store()
    version = store.version
    apply(store, (True, "a", 1))
    store.forget()
    await asyncio.wait_for(store.wait(PODS.name, version, 30), 10)


async def test_a_watch_shows_each_change_once_despite_other_resources() -> None:
    store = Store()
    request = watch.WatchRequest(
        Target(PODS), lambda _: True, store.version, bookmarks=False, initial_end=False, timeout_s=30
    )
    lines = watch.lines(store, request, asyncio.get_running_loop().time)
    seen = []
    async with asyncio.timeout(30):
        for name in "abc":
            for _ in range(3):
                store.put(GPUNODES.name, ("", "n"), {"metadata": {"name": "n"}})
            apply(store, (True, name, 0))
            seen.append(json.loads(await anext(lines))["object"]["metadata"]["name"])
    assert seen == ["a", "b", "c"]
