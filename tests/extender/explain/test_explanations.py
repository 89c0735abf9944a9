"""Events about pods that no node can take are made after filter was answered, and none is lost."""

import asyncio
import json
from http import HTTPStatus
from typing import Any

import pytest

from extender import app
from extender.explain import explanations
from tests.extender.conftest import World

TOO_MUCH_MIB = 4096  # of cards with 2048


async def test_filter_is_answered_before_the_event_is_made(world: World) -> None:
    pod = await world.create_pod(gpu_mem=TOO_MUCH_MIB)
    assert not (await world.filter(pod))["NodeNames"]
    assert not world.seen.recorder.rests(pod["metadata"]["uid"])
    await asyncio.sleep(0)
    assert world.seen.recorder.rests(pod["metadata"]["uid"])
    event = (await world.events())[0]
    assert event["reason"] == "CardTooSmall"
    assert event["message"].startswith("needs 4 GiB on 1 card; n1: card 0 CardTooSmall")


async def test_the_reply_is_sent_before_the_event_is_made(world: World) -> None:
    pod = await world.create_pod(gpu_mem=TOO_MUCH_MIB)
    body = json.dumps({"Pod": pod, "NodeNames": ["n1"]}).encode()
    rests = list[bool]()

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Any) -> None:
        assert message.get("status", HTTPStatus.OK) == HTTPStatus.OK
        rests.append(world.seen.recorder.rests(pod["metadata"]["uid"]))

    await world.until(lambda: world.seen.is_synced)
    verbs = app.app(world.verbs, world.seen, world.clock)
    await verbs({"type": "http", "path": "/filter", "method": "POST", "headers": []}, receive, send)
    assert rests == [False, False]  # the start of the reply, and its body
    await asyncio.sleep(0)
    assert world.seen.recorder.rests(pod["metadata"]["uid"])


@pytest.mark.heavy
async def test_each_of_several_pods_has_its_turn_of_the_event_loop(world: World) -> None:
    pods = [await world.create_pod(gpu_mem=TOO_MUCH_MIB) for _ in range(3)]
    for pod in pods:
        await world.filter(pod)
    explained = []
    for _ in pods:
        await asyncio.sleep(0)
        explained.append([world.seen.recorder.rests(pod["metadata"]["uid"]) for pod in pods])
    assert explained == [[True, False, False], [True, True, False], [True, True, True]]


async def test_a_pod_that_is_refused_twice_at_once_is_explained_once(world: World) -> None:
    pod = await world.create_pod(gpu_mem=TOO_MUCH_MIB)
    for _ in range(2):
        await world.filter(pod)
    assert len(world.verbs.explanations._waiting) == 1
    await asyncio.sleep(0)
    assert not world.verbs.explanations._waiting


async def test_beyond_the_bound_a_call_waits_for_its_own_explanation(world: World, monkeypatch: Any) -> None:
    monkeypatch.setattr(explanations, "MAX_WAITING", 1)
    pods = [await world.create_pod(gpu_mem=TOO_MUCH_MIB) for _ in range(2)]
    for pod in pods:
        await world.filter(pod)
    assert [world.seen.recorder.rests(pod["metadata"]["uid"]) for pod in pods] == [False, True]
    await asyncio.sleep(0)
    assert world.seen.recorder.rests(pods[0]["metadata"]["uid"])


async def test_an_explanation_that_fails_is_logged_and_keeps_no_other_from_its_turn(
    world: World, monkeypatch: Any, caplog: Any
) -> None:
    pods = [await world.create_pod(gpu_mem=TOO_MUCH_MIB) for _ in range(2)]
    for pod in pods:
        await world.filter(pod)
    first = next(iter(world.verbs.explanations._waiting.values()))[1]
    monkeypatch.setattr(first, "_codes", None)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert "Exception in callback Explanations._next" in caplog.text
    assert world.seen.recorder.rests(pods[1]["metadata"]["uid"])
