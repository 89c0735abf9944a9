"""Events: one series for an object and a reason, posted when there is something new, and renewed before it expires."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import pytest

from extender.effects import event_recorder
from extender.effects.event_recorder import EventRecorder
from tests.extender.conftest import Clock, World
from vgpu.domain import object_names

EVENTS = "/api/v1/namespaces/default/events"


def pod(n: int) -> dict[str, str]:
    return {"apiVersion": "v1", "kind": "Pod", "namespace": "default", "name": f"p{n}", "uid": f"u{n}"}


@asynccontextmanager
async def recording(world: World, clock: Clock) -> AsyncIterator[EventRecorder]:
    """A recorder; at the end everything that it may post by its clock is posted."""
    recorder = EventRecorder(world.client, clock, lambda: datetime.now(UTC), clock.sleep)
    running = asyncio.create_task(recorder.run())
    yield recorder
    await idle(recorder)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def idle(recorder: EventRecorder) -> None:
    async with asyncio.timeout(10):
        while recorder._waiting:
            await asyncio.sleep(0.01)
    await asyncio.sleep(0.05)


async def posted(world: World, namespace: str = "default") -> list[tuple[str, str, int]]:
    path = EVENTS.replace("default", namespace)
    found: list[dict[str, Any]] = json.loads(await world.client.get(path))["items"]
    return sorted((event["reason"], event["message"], event["count"]) for event in found)


async def test_an_unchanged_message_is_posted_once_and_renewed_before_it_expires(world: World) -> None:
    async with recording(world, world.clock) as recorder:
        for _ in range(100):
            recorder.record(pod(1), "Full", "no room")
            world.clock.seconds += 10
        await idle(recorder)
        assert await posted(world) == [("Full", "no room", 1)]
        world.clock.seconds += event_recorder.RENEW_S
        recorder.record(pod(1), "Full", "no room")
    assert await posted(world) == [("Full", "no room", 2)]


@pytest.mark.heavy
async def test_a_changed_message_goes_to_the_same_event_less_and_less_often(world: World) -> None:
    async with recording(world, world.clock) as recorder:
        for n in range(3600):
            recorder.record(pod(1), "Full", f"{n} free")
            world.clock.seconds += 1
            if n % 120 == 0:  # posting takes real time, which the clock does not know
                await idle(recorder)
        recorder.record(pod(1), "Away", "no plugin")
    away, full = await posted(world)
    assert away == ("Away", "no plugin", 1)
    assert 5 <= full[2] <= 5 + 3600 / event_recorder.MAX_INTERVAL_S


async def test_a_restarted_recorder_continues_the_series(world: World) -> None:
    for n in range(3):
        async with recording(world, world.clock) as recorder:
            recorder.record(pod(1), "Full", f"{n} free")
    async with recording(world, world.clock) as recorder:
        recorder.record(pod(1), "Full", "nothing free")
        await idle(recorder)
        world.clock.seconds += event_recorder.MIN_INTERVAL_S
        recorder.record(pod(1), "Full", "1 free")
    ((_, message, count),) = await posted(world)
    assert (message, count) == ("1 free", 2)


async def test_an_event_that_has_expired_is_created_again(world: World) -> None:
    async with recording(world, world.clock) as recorder:
        recorder.record(pod(1), "Full", "no room")
        await idle(recorder)
        (event,) = json.loads(await world.client.get(EVENTS))["items"]
        await world.client.delete(f"{EVENTS}/{event['metadata']['name']}")
        world.clock.seconds += event_recorder.RENEW_S
        recorder.record(pod(1), "Full", "no room")
    assert len(await posted(world)) == 1


@pytest.mark.heavy
async def test_a_crowd_is_posted_at_the_rate_of_the_bucket_and_nothing_is_lost(world: World) -> None:
    async with recording(world, world.clock) as recorder:
        for n in range(60):
            recorder.record(pod(n), "Full", "old")
        await asyncio.sleep(0.5)
        assert len(await posted(world)) == event_recorder.BURST
        for n in range(60):
            recorder.record(pod(n), "Full", "new")
        for _ in range(30):
            world.clock.seconds += 0.2
            await asyncio.sleep(0.02)
    events = await posted(world)
    assert len(events) == 60
    assert [message for _, message, _ in events].count("new") == 60 - event_recorder.BURST


async def test_a_refused_event_is_tried_again_with_the_next_message(world: World) -> None:
    gone = pod(1) | {"namespace": "not/a/path"}
    async with recording(world, world.clock) as recorder:
        recorder.record(gone, "Full", "no room")
        await idle(recorder)
        recorder.record(pod(1), "Full", "no room")
        await idle(recorder)
        assert await posted(world) == []
        world.clock.seconds += event_recorder.MIN_INTERVAL_S
        recorder.record(pod(1), "Full", "no room")
    assert await posted(world) == [("Full", "no room", 1)]


async def test_a_crowd_in_one_namespace_neither_delays_nor_displaces_the_event_of_another(world: World) -> None:
    recorder = EventRecorder(world.client, world.clock, lambda: datetime.now(UTC), world.clock.sleep)
    recorder.record(pod(0) | {"namespace": "neighbour"}, "Full", "no room")
    for number in range(2 * event_recorder.QUEUE_SIZE):
        recorder.record(pod(number) | {"uid": f"crowd-{number}"}, "Full", "no room")
    recorder.record(pod(1) | {"namespace": "late"}, "Full", "no room")
    running = asyncio.create_task(recorder.run())
    async with asyncio.timeout(10):
        while not (await posted(world, "neighbour") and await posted(world, "late")):
            await asyncio.sleep(0.01)
    assert len(await posted(world)) <= event_recorder.BURST
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_a_crowd_in_one_namespace_makes_no_event_of_another_be_posted_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_recorder, "MAX_SERIES", 20)
    mine = pod(0) | {"namespace": "neighbour"}
    async with recording(world, world.clock) as recorder:
        recorder.record(mine, "Full", "no room")
        await idle(recorder)
        for number in range(1, 30):
            recorder.record(pod(number), "Full", "no room")
        await idle(recorder)
        assert recorder.rests(mine["uid"])
        world.clock.seconds += 2 * event_recorder.MIN_INTERVAL_S
        recorder.record(mine, "Full", "no room")
    ((_, _, count),) = await posted(world, "neighbour")
    assert count == 1


@pytest.mark.parametrize("end", [".", "-", "-.-"])
async def test_the_events_of_a_long_name_have_valid_names_wherever_it_is_cut(world: World, end: str) -> None:
    long = "a" * (200 - len(end)) + end + "b"
    async with recording(world, world.clock) as recorder:
        recorder.record(pod(1) | {"name": long}, "Full", "no room")
    (event,) = json.loads(await world.client.get(EVENTS))["items"]
    assert object_names.is_subdomain(event["metadata"]["name"])
