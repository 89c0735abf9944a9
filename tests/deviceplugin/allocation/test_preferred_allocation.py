"""GetPreferredAllocation: the pod that is being admitted, although the watch lags."""

import asyncio
from dataclasses import replace

from deviceplugin.candidate_search import DEADLINE_S
from tests.deviceplugin.plugin_parts import PluginParts, share
from tests.vgpu.node.builders import slices
from vgpu.domain import names
from vgpu.domain.identifiers import ContainerName


async def test_no_list_from_the_preference_until_some_time_after_allocate(parts: PluginParts) -> None:
    pod = share("p", 10)
    parts.pods.upsert(pod)
    parts.kubelet.held[pod.key] = {}
    ids = await parts.preferred.prefer(names.SLICE, slices(0, *range(8)), [], 4)
    listed = parts.kubelet.lists
    updating = asyncio.create_task(parts.pod_resources.run(lambda: None))
    await asyncio.sleep(0.03)
    parts.allocator.allocate(names.SLICE, frozenset(ids))
    await asyncio.sleep(0.03)
    assert parts.kubelet.lists == listed
    parts.now += 0.3
    await asyncio.sleep(0.1)
    updating.cancel()
    assert parts.kubelet.lists > listed


async def test_a_pod_that_the_watch_has_not_shown_is_read(parts: PluginParts) -> None:
    pod = share("p", 10, gpus=1)
    parts.server.pods[pod.key] = pod
    parts.kubelet.held[pod.key] = {}
    ids = await parts.preferred.prefer(names.SLICE, slices(0, *range(8)) | slices(1, *range(8)), [], 4)
    assert frozenset(ids) == slices(1, 0, 1, 2, 3)
    assert parts.server.fetched == [pod.key]


async def test_a_pod_that_was_admitted_before_is_read_again(parts: PluginParts) -> None:
    """The watch shows only the deleted pod of that name, not the recreated pod."""
    old, new = share("p", 10, uid="old", gpus=0), share("p", 10, uid="new", gpus=1)
    parts.pods.upsert(replace(old, is_admitted=True))
    parts.server.pods[new.key] = new
    parts.kubelet.held[new.key] = {}
    ids = await parts.preferred.prefer(names.SLICE, slices(0, *range(8)) | slices(1, *range(8)), [], 4)
    assert frozenset(ids) == slices(1, 0, 1, 2, 3)


async def test_a_pod_deleted_during_its_admission_does_not_delay_other_pods(parts: PluginParts) -> None:
    """The kubelet still lists the pod; neither the watch nor the API server has it."""
    parts.kubelet.held[share("gone", 10).key] = {ContainerName("main"): {}}
    started = asyncio.get_running_loop().time()
    ids = await parts.preferred.prefer(names.SLICE, slices(0, *range(8)), [], 4)
    assert len(ids) == 4
    assert asyncio.get_running_loop().time() - started < DEADLINE_S / 2
    assert parts.server.fetched == [share("gone", 10).key]


async def test_a_pod_whose_read_failed_is_read_again(parts: PluginParts) -> None:
    pod = share("p", 10, gpus=1)
    parts.server.pods[pod.key] = pod
    parts.server.fails = True
    parts.kubelet.held[pod.key] = {}
    offered = slices(0, *range(8)) | slices(1, *range(8))
    asking = asyncio.create_task(parts.preferred.prefer(names.SLICE, offered, [], 4))
    await asyncio.sleep(0.15)
    assert not asking.done()
    parts.server.fails = False
    assert frozenset(await asking) == slices(1, 0, 1, 2, 3)
