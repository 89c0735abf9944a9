"""Bindings without a response: the cards stay reserved until the pod has been read, however late."""

import asyncio
from typing import Any, Final

import pytest

from extender.lead import binding_outcome
from tests.extender.conftest import World
from vgpu.domain.errors import KubernetesError

LOST: Final = KubernetesError(0, "TimeoutError", "")
FORBIDDEN: Final = KubernetesError(403, "Forbidden", "no")


async def bind_unknown(world: World) -> dict[str, Any]:
    """Post a Binding that times out, of a pod that cannot be read; return the pod."""
    pod = await world.create_pod()
    world.client.faults, world.client.reads_fail = [("before", LOST)], True
    assert "TimeoutError" in await world.bind(pod)
    return pod


async def test_the_cards_stay_reserved_until_the_pod_is_read(world: World) -> None:
    await bind_unknown(world)
    world.clock.seconds += binding_outcome.REQUEST_EXPIRY_S + 600
    await asyncio.sleep(0.05)
    assert world.used_slices() == [4, 0]
    world.client.reads_fail = False
    world.clock.seconds += binding_outcome.RETRY_S
    await world.until(lambda: world.used_slices() == [0, 0])


async def test_the_pod_is_not_read_before_the_request_has_expired(world: World) -> None:
    await bind_unknown(world)
    world.client.reads_fail = False
    world.clock.seconds += binding_outcome.REQUEST_EXPIRY_S - 1
    await asyncio.sleep(0.05)
    assert world.used_slices() == [4, 0]


async def test_a_late_binding_counts_although_the_watch_lags(world: World) -> None:
    pod = await bind_unknown(world)
    world.client.reads_fail = False
    world.stop_watching()
    posted = world.client.lost[-1]
    await world.client.post(*posted)
    world.clock.seconds += binding_outcome.REQUEST_EXPIRY_S
    await asyncio.sleep(0.05)
    world.clock.seconds += 3600
    assert not world.cluster.objects.pods[pod["metadata"]["uid"]].node
    assert world.used_slices() == [4, 0]


async def test_a_deleted_pod_releases_its_cards(world: World) -> None:
    pod = await bind_unknown(world)
    world.client.reads_fail = False
    await world.delete_pod(pod)
    assert world.used_slices() == [0, 0]


async def test_a_retry_posts_the_same_cards(world: World) -> None:
    pod = await world.create_pod()
    world.client.faults = [("before", LOST)]
    assert "TimeoutError" in await world.bind(pod)
    other = await world.create_pod(gpu_mem=256)
    assert await world.bind(other) == ""
    assert await world.bind(pod) == ""
    assert world.used_slices() == [5, 0]


async def test_a_refused_retry_keeps_the_reservation_of_the_first_attempt(world: World) -> None:
    pod = await world.create_pod()
    world.client.faults = [("before", LOST), ("before", FORBIDDEN)]
    assert "TimeoutError" in await world.bind(pod)
    assert "Forbidden" in await world.bind(pod)
    assert world.used_slices() == [4, 0]
    world.clock.seconds += binding_outcome.REQUEST_EXPIRY_S
    await world.until(lambda: world.used_slices() == [0, 0])


async def test_a_refused_retry_of_a_bound_pod_keeps_the_reservation_until_the_watch_shows_it(world: World) -> None:
    pod = await world.create_pod()
    world.stop_watching()
    assert await world.bind(pod) == ""
    world.client.faults, world.client.reads_fail = [("before", FORBIDDEN)], True
    assert "Forbidden" in await world.bind(pod)
    assert world.used_slices() == [4, 0]
    world.client.reads_fail = False
    world.clock.seconds += binding_outcome.REQUEST_EXPIRY_S
    await asyncio.sleep(0.05)
    assert world.used_slices() == [4, 0]


@pytest.mark.heavy
async def test_a_retry_restarts_the_expiry(world: World) -> None:
    pod = await world.create_pod()
    world.client.faults = [("before", LOST), ("before", LOST)]
    await world.bind(pod)
    world.clock.seconds += binding_outcome.REQUEST_EXPIRY_S - 1
    await world.bind(pod)
    world.clock.seconds += 2
    await asyncio.sleep(0.05)
    assert world.used_slices() == [4, 0]
