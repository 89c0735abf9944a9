"""PreStartContainer: the holder of the IDs is proven although names recur and the watch lags."""

import asyncio
import shutil
from dataclasses import replace

from tests import leases
from tests.deviceplugin.plugin_parts import IDS, PluginParts, share
from tests.strategies import container
from tests.vgpu.node.builders import bound, slices, uuid
from vgpu.domain import names
from vgpu.domain.cards.reasons import Reason
from vgpu.domain.identifiers import ContainerName
from vgpu.node.containers.allocations import Holder
from vgpu.node.containers.refusal import NodeReason


async def test_of_two_pods_of_one_name_a_quorum_read_finds_the_holder(parts: PluginParts) -> None:
    """The watch still shows the pod that the new pod replaces."""
    old, new = share("p", 10, uid="old"), share("p", 20, uid="new")
    for pod in (old, new):
        parts.pods.upsert(pod)
    parts.server.pods[new.key] = new
    allocated = parts.allocate(IDS, new)
    parts.set_holder(new, IDS)
    assert await parts.prove() == ""
    assert parts.server.fetched == [new.key]
    assert parts.enforced_limits(allocated) == [(uuid(0), 20)]


async def test_the_list_corrects_a_wrong_guess(parts: PluginParts) -> None:
    guessed, actual = share("guessed", 10), share("actual", 20)
    for pod in (guessed, actual):
        parts.pods.upsert(pod)
    parts.server.pods[actual.key] = actual
    allocated = parts.allocate(IDS, guessed, is_doubtful=True)
    parts.set_holder(guessed, slices(1, 0, 1, 2, 3))
    parts.kubelet.held[actual.key] = {ContainerName("main"): {names.SLICE: IDS}}
    updating = asyncio.create_task(parts.pod_resources.run(lambda: None))
    assert await parts.prove() == ""
    updating.cancel()
    assert parts.enforced_limits(allocated) == [(uuid(0), 20)]
    assert parts.allocations.all()[0].holder == Holder.of(actual, ContainerName("main"))


async def test_the_listed_holder_of_an_init_containers_ids_corrects_a_wrong_guess(parts: PluginParts) -> None:
    guessed = share("guessed", 10)
    actual = bound("actual", container(gpu_mem=512), init=(container("init", gpu_mem=1024, gpu_cores=7),))
    for pod in (guessed, actual):
        parts.pods.upsert(pod)
    parts.server.pods[actual.key] = actual
    allocated = parts.allocate(IDS, guessed, is_doubtful=True)
    parts.set_holder(actual, slices(0, 0, 1))
    updating = asyncio.create_task(parts.pod_resources.run(lambda: None))
    assert await parts.prove() == ""
    updating.cancel()
    assert parts.enforced_limits(allocated) == [(uuid(0), 7)]
    assert parts.allocations.all()[0].holder == Holder.of(actual, ContainerName("init"))


async def test_two_pods_of_one_name_are_refused_while_the_api_server_fails(parts: PluginParts) -> None:
    guessed, actual = share("guessed", 10, uid="old"), share("guessed", 20, uid="new")
    for pod in (guessed, actual):
        parts.pods.upsert(pod)
    allocated = parts.allocate(IDS, guessed)
    parts.set_holder(guessed, IDS)
    parts.server.fails = True
    assert await parts.prove() == NodeReason.HOLDER_UNKNOWN
    assert parts.enforced_limits(allocated) == []


async def test_of_two_records_of_the_same_ids_the_living_pods_record_counts(parts: PluginParts) -> None:
    gone, now = share("gone", 10), share("now", 20)
    parts.pods.upsert(replace(gone, is_terminal=True))
    parts.pods.upsert(now)
    before, allocated = parts.allocate(IDS, gone, is_proven=True), parts.allocate(IDS, now)
    parts.set_holder(now, IDS)
    assert await parts.prove() == ""
    assert parts.enforced_limits(before) == []
    assert parts.enforced_limits(allocated) == [(uuid(0), 20)]
    assert parts.server.fetched == []


async def test_a_file_system_error_is_refused_and_the_next_start_succeeds(parts: PluginParts) -> None:
    pod = share("p", 10)
    parts.pods.upsert(pod)
    allocated = parts.allocate(IDS, pod)
    parts.set_holder(pod, IDS)
    shared = parts.files.region(allocated.id).parent
    shutil.rmtree(shared)
    shared.touch()
    assert await parts.prove() == NodeReason.FILES_FAILED
    assert parts.reported == [(pod.uid, "FilesFailed")]
    shared.unlink()
    assert await parts.prove() == ""


async def test_a_listed_pod_without_an_api_object_still_holds_its_card(parts: PluginParts) -> None:
    stray = bound("stray")
    parts.set_holder(stray, slices(0, 7))
    await parts.list_once()
    whole = bound("whole", container(gpu=1))
    parts.pods.upsert(whole)
    parts.allocate(frozenset({uuid(0)}), whole, resource=names.CARD)
    parts.kubelet.held[whole.key] = {ContainerName("main"): {names.CARD: frozenset({uuid(0)})}}
    refusal = await parts.prover.prove(names.CARD, frozenset({uuid(0)}))
    assert refusal is not None
    assert refusal.reason == Reason.CARD_IN_USE
    del parts.kubelet.held[stray.key]
    await parts.list_once()
    assert await parts.prover.prove(names.CARD, frozenset({uuid(0)})) is None


async def test_a_volume_over_the_limiters_files_is_refused(parts: PluginParts) -> None:
    covering = container(gpu_mem=1024) | {"volumeMounts": [{"name": "v", "mountPath": "/run/vgpu"}]}
    pod = bound("p", covering)
    parts.pods.upsert(pod)
    parts.allocate(IDS, pod)
    parts.set_holder(pod, IDS)
    assert NodeReason.FILES_COVERED in await parts.prove()


async def test_each_start_gives_a_container_files_of_its_own(parts: PluginParts) -> None:
    """Whoever opens a file that a container has leased waits for 45 s: the loader of every other container, too."""
    pod = share("p", 10)
    parts.pods.upsert(pod)
    parts.server.pods[pod.key] = pod
    allocated = parts.allocate(IDS, pod)
    parts.set_holder(pod, IDS)
    assert await parts.prove() == ""
    own = (parts.files.library(allocated.id), parts.files.preload(allocated.id))
    assert own[0].read_bytes() == b"library"
    with leases.held(own[0]), leases.held(own[1]):
        assert await parts.prove() == ""
    with leases.held(parts.files.limits(allocated.id)):
        assert await parts.prove() == NodeReason.FILES_FAILED
    assert await parts.prove() == ""
