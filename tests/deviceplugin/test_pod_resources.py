"""When pod-resources are listed: never while an Allocate may be in flight, and soon after a request for a list."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from deviceplugin.kubelet.messages import Holdings, Listing
from deviceplugin.pod_resources import PodResources
from vgpu.domain import names
from vgpu.domain.identifiers import ContainerName, Namespace
from vgpu.node.containers.bound_pod import PodKey

NS = Namespace("ns")

IDS = frozenset({"a", "b"})


class FakePodResources:
    """A pod-resources service that counts its calls."""

    def __init__(self) -> None:
        self.lists = 0
        self.concurrent_lists = 0
        self.holdings: Holdings = {}
        self.gets = 0

    async def list(self) -> Listing:
        self.lists += 1
        self.concurrent_lists += 1
        assert self.concurrent_lists == 1
        await asyncio.sleep(0.001)
        self.concurrent_lists -= 1
        return {(NS, str(self.lists)): {}}

    async def get(self, key: PodKey) -> Holdings:
        assert key == ("ns", "p")
        self.gets += 1
        return self.holdings


@pytest.fixture
async def source() -> FakePodResources:
    return FakePodResources()


@pytest.fixture
async def pod_resources(source: FakePodResources) -> AsyncIterator[PodResources]:
    made = PodResources(source, asyncio.get_running_loop().time)
    task = asyncio.create_task(made.run(lambda: None))
    await made.fresh(1)
    yield made
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


async def test_a_fresh_list_starts_after_the_request(pod_resources: PodResources) -> None:
    before = pod_resources.snapshot
    after = await pod_resources.fresh(1)
    assert after.number > before.number
    assert after.started > before.started


async def test_no_list_between_the_preference_and_the_end_of_allocate(
    pod_resources: PodResources, source: FakePodResources
) -> None:
    async with pod_resources.admitting() as list_now:
        await list_now()
        pod_resources.refresh_soon()
    listed = source.lists
    assert (await pod_resources.fresh(0.1)).number == pod_resources.snapshot.number
    assert source.lists == listed
    pod_resources.allocated(None, IDS)
    assert (await pod_resources.fresh(0.1)).number == pod_resources.snapshot.number
    assert (await pod_resources.fresh(1)).listing
    assert source.lists > listed


async def test_a_list_follows_as_soon_as_get_shows_the_allocated_ids(
    pod_resources: PodResources, source: FakePodResources
) -> None:
    async with pod_resources.admitting():
        pod_resources.refresh_soon()
    pod_resources.allocated((NS, "p"), IDS)
    listed = source.lists
    await asyncio.sleep(0.05)
    source.holdings = {ContainerName("main"): {names.SLICE: frozenset({"another"})}}
    await asyncio.sleep(0.05)
    assert source.lists == listed
    source.holdings = {ContainerName("main"): {names.SLICE: IDS}}
    await asyncio.sleep(0.08)
    assert source.lists > listed
    assert source.gets <= 5, "pod-resources limits the calls a second, and GetPreferredAllocation needs them"


async def test_a_list_during_an_admission_serves_waiting_requests(pod_resources: PodResources) -> None:
    async with pod_resources.admitting() as list_now:
        waiting = asyncio.create_task(pod_resources.fresh(1))
        await asyncio.sleep(0)
        await list_now()
    assert (await waiting).listing == pod_resources.snapshot.listing


async def test_get_never_waits(pod_resources: PodResources) -> None:
    async with pod_resources.admitting():
        assert await pod_resources.get((NS, "p")) == {}
