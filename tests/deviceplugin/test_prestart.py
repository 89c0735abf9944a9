"""The proof where the witnesses differ: names that recur, watches that lag, and the quiet around an Allocate."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from deviceplugin.allocate import Allocator, Recorder
from deviceplugin.candidate_search import DEADLINE_S
from deviceplugin.garbage_collection import GarbageCollector
from deviceplugin.holder_lookup import HolderLookup
from deviceplugin.kubelet.messages import Holdings, Listing
from deviceplugin.occupancy import Occupancy
from deviceplugin.pod_resources import PodResources
from deviceplugin.preferred_allocation import PreferredAllocation
from deviceplugin.prestart import Prover
from deviceplugin.responses import Injection
from tests.strategies import container
from tests.vgpu.node.builders import SLICE_MIB, allocation, bound, gpu, slices, uuid
from vgpu import limits, names
from vgpu.errors import KubernetesError
from vgpu.node.allocations import Allocation, Allocations, Holder
from vgpu.node.inventory import HeldDevices, Inventory
from vgpu.node.limits_writer import LimitsWriter
from vgpu.node.pods import BoundPod, PodKey, Pods
from vgpu.node.refusal import NodeReason, Refusal
from vgpu.node.state_files import StateFiles
from vgpu.reasons import Reason

IDS = slices(0, 0, 1, 2, 3)


@dataclass
class Kubelet:
    """Pod-resources that list what the test says."""

    held: dict[PodKey, Holdings] = field(default_factory=dict)
    lists: int = 0

    async def list(self) -> Listing:
        self.lists += 1
        return dict(self.held)

    async def get(self, key: PodKey) -> Holdings:
        return self.held.get(key, {})


@dataclass
class Server:
    """An API server that knows the pods given."""

    pods: dict[PodKey, BoundPod] = field(default_factory=dict)
    fetched: list[PodKey] = field(default_factory=list)
    fails: bool = False

    async def pod(self, key: PodKey) -> BoundPod | None:
        self.fetched.append(key)
        if self.fails:
            raise KubernetesError(0, "Timeout", "")
        return self.pods.get(key)


class Node:
    """The plugin's inside without its sockets."""

    def __init__(self, state: Path) -> None:
        self.now = 0.0
        self.kubelet, self.server = Kubelet(), Server()
        self.pods, self.files = Pods(), StateFiles(state)
        self.allocations = Allocations(self.files.allocations)
        self.pod_resources = PodResources(self.kubelet, lambda: self.now)
        self.inventory = Inventory(SLICE_MIB)
        self.inventory.set_gpus((gpu(0), gpu(1)), {})
        self.reported: list[tuple[str, str]] = []
        self.occupancy = Occupancy(self.pods, self.pod_resources, self.allocations, self.inventory, lambda: self.now)
        numbers = iter(range(1000))
        recorder = Recorder(self.pods, self.allocations, lambda: f"new{next(numbers)}", lambda: self.now)
        self.preferred = PreferredAllocation(self.pods, self.allocations, self.server, self.pod_resources)
        injection = Injection(self.files, "l")
        self.allocator = Allocator(self.preferred, recorder, self.inventory, injection, self._allocated)
        holders = HolderLookup(self.pods, self.allocations, self.server, self.pod_resources)
        writer = LimitsWriter(self.allocations, self.files)
        self.prover = Prover(holders, self.inventory, self.occupancy, writer, self._report)

    def _allocated(self, made: Allocation) -> None:
        self.pod_resources.allocated(made.holder.key if made.holder else None, made.ids)
        self.occupancy.recount()

    def give(self, ids: frozenset[str], pod: BoundPod | None, **more: Any) -> Allocation:
        made = allocation(ids, pod, sequence=self.allocations.next_sequence(), **more)
        self.allocations.add(made)
        self.files.prepare(made.id)
        return made

    def hold(self, pod: BoundPod, ids: frozenset[str], name: str = "main") -> None:
        self.kubelet.held[pod.key] = {name: {names.SLICE: ids}}

    def enforced(self, made: Allocation) -> list[tuple[str, int]]:
        read = limits.decode(self.files.limits(made.id).read_bytes())
        return [(card.gpu, card.cores) for card in read.cards]

    async def prove(self, ids: frozenset[str] = IDS) -> str:
        refusal = await self.prover.prove(names.SLICE, ids)
        return refusal.reason if refusal else ""

    def _report(self, pod: BoundPod, refusal: Refusal) -> None:
        self.reported.append((pod.uid, str(refusal.reason)))


@pytest.fixture
async def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


@pytest.fixture
def share() -> Callable[..., BoundPod]:
    def make(name: str, cores: int, **more: Any) -> BoundPod:
        return bound(name, container(gpu_mem=1024, gpu_cores=cores), **more)

    return make


async def test_a_name_that_stands_twice_is_settled_by_a_quorum_read(node: Node, share: Any) -> None:
    """The watch still shows the pod that this one replaces."""
    old, new = share("p", 10, uid="old"), share("p", 20, uid="new")
    for pod in (old, new):
        node.pods.upsert(pod)
    node.server.pods[new.key] = new
    made = node.give(IDS, new)
    node.hold(new, IDS)
    assert await node.prove() == ""
    assert node.server.fetched == [new.key]
    assert node.enforced(made) == [(uuid(0), 20)]


async def test_a_wrong_guess_is_put_right_by_the_listing(node: Node, share: Any) -> None:
    guessed, true = share("guessed", 10), share("true", 20)
    for pod in (guessed, true):
        node.pods.upsert(pod)
    node.server.pods[true.key] = true
    made = node.give(IDS, guessed, is_doubtful=True)
    node.hold(guessed, slices(1, 0, 1, 2, 3))
    node.kubelet.held[true.key] = {"main": {names.SLICE: IDS}}
    running = asyncio.create_task(node.pod_resources.run(lambda: None))
    assert await node.prove() == ""
    running.cancel()
    assert node.enforced(made) == [(uuid(0), 20)]
    assert node.allocations.all()[0].holder == Holder.of(true, "main")


async def test_an_init_containers_wrong_guess_is_put_right_by_who_got_its_ids(node: Node, share: Any) -> None:
    guessed = share("guessed", 10)
    true = bound("true", container(gpu_mem=512), init=(container("init", gpu_mem=1024, gpu_cores=7),))
    for pod in (guessed, true):
        node.pods.upsert(pod)
    node.server.pods[true.key] = true
    made = node.give(IDS, guessed, is_doubtful=True)
    node.hold(true, slices(0, 0, 1))
    running = asyncio.create_task(node.pod_resources.run(lambda: None))
    assert await node.prove() == ""
    running.cancel()
    assert node.enforced(made) == [(uuid(0), 7)]
    assert node.allocations.all()[0].holder == Holder.of(true, "init")


async def test_without_the_api_server_a_doubt_stays_and_nothing_runs(node: Node, share: Any) -> None:
    guessed, true = share("guessed", 10, uid="old"), share("guessed", 20, uid="new")
    for pod in (guessed, true):
        node.pods.upsert(pod)
    made = node.give(IDS, guessed)
    node.hold(guessed, IDS)
    node.server.fails = True
    assert await node.prove() == NodeReason.HOLDER_UNKNOWN
    assert node.enforced(made) == []


async def test_old_records_of_the_same_ids_are_left_behind(node: Node, share: Any) -> None:
    gone, now = share("gone", 10), share("now", 20)
    node.pods.upsert(replace(gone, is_terminal=True))
    node.pods.upsert(now)
    before, made = node.give(IDS, gone, is_proven=True), node.give(IDS, now)
    node.hold(now, IDS)
    assert await node.prove() == ""
    assert node.enforced(before) == []
    assert node.enforced(made) == [(uuid(0), 20)]
    assert node.server.fetched == []


async def test_a_full_file_system_is_a_reason_that_heals(node: Node, share: Any) -> None:
    pod = share("p", 10)
    node.pods.upsert(pod)
    node.give(IDS, pod)
    node.hold(pod, IDS)
    node.files.regions.chmod(0o700)
    for path in node.files.regions.iterdir():
        path.unlink()
    node.files.regions.rmdir()
    assert await node.prove() == NodeReason.FILES_FAILED
    assert node.reported == [(pod.uid, "FilesFailed")]
    node.files.regions.mkdir()
    assert await node.prove() == ""


async def test_lists_wait_from_the_preference_until_allocate_is_surely_over(node: Node, share: Any) -> None:
    pod = share("p", 10)
    node.pods.upsert(pod)
    node.kubelet.held[pod.key] = {}
    ids = await node.preferred.prefer(names.SLICE, slices(0, *range(8)), [], 4)
    listed = node.kubelet.lists
    running = asyncio.create_task(node.pod_resources.run(lambda: None))
    await asyncio.sleep(0.03)
    node.allocator.allocate(names.SLICE, frozenset(ids))
    await asyncio.sleep(0.03)
    assert node.kubelet.lists == listed
    node.now += 0.3
    await asyncio.sleep(0.1)
    running.cancel()
    assert node.kubelet.lists > listed


async def test_a_lagging_watch_is_helped_by_a_read(node: Node, share: Any) -> None:
    pod = share("p", 10, gpus=1)
    node.server.pods[pod.key] = pod
    node.kubelet.held[pod.key] = {}
    ids = await node.preferred.prefer(names.SLICE, slices(0, *range(8)) | slices(1, *range(8)), [], 4)
    assert frozenset(ids) == slices(1, 0, 1, 2, 3)
    assert node.server.fetched == [pod.key]


async def test_a_pod_that_was_admitted_before_is_read_again_before_it_is_believed(node: Node, share: Any) -> None:
    """The watch shows only the forerunner of a recreated pod."""
    old, new = share("p", 10, uid="old", gpus=0), share("p", 10, uid="new", gpus=1)
    node.pods.upsert(replace(old, is_admitted=True))
    node.server.pods[new.key] = new
    node.kubelet.held[new.key] = {}
    ids = await node.preferred.prefer(names.SLICE, slices(0, *range(8)) | slices(1, *range(8)), [], 4)
    assert frozenset(ids) == slices(1, 0, 1, 2, 3)


async def test_cleaning_takes_two_looks_and_a_watch_that_knows(node: Node, share: Any) -> None:
    gone, here = share("gone", 10), share("here", 20)
    node.pods.upsert(here)
    library = node.files.install_library(Path(__file__))
    old = node.give(IDS, gone, library="old")
    kept = node.give(slices(1, 0), here, library=library)
    node.files.libraries.joinpath("old").mkdir()
    node.files.regions.joinpath(".crashed.x").touch()
    synced = asyncio.Event()
    node.now = 1000.0 + 601
    cleaner = GarbageCollector(
        node.pods, node.pod_resources, node.allocations, node.files, library, synced=synced, wall_clock=lambda: node.now
    )

    await look(node)
    cleaner.collect()
    await look(node)
    cleaner.collect()
    assert node.allocations.all() == (old, kept)
    synced.set()
    cleaner.collect()
    assert node.allocations.all() == (old, kept), "the same look twice is one look"
    await look(node)
    cleaner.collect()
    assert node.allocations.all() == (kept,)
    assert [path.name for path in node.files.allocations.iterdir()] == [kept.id]
    assert [path.name for path in node.files.regions.iterdir()] == [kept.id]
    assert [path.name for path in node.files.libraries.iterdir()] == [library]


async def look(node: Node) -> None:
    """Have pod-resources listed once."""
    node.now += 1
    running = asyncio.create_task(node.pod_resources.run(lambda: None))
    await node.pod_resources.fresh(1)
    running.cancel()


async def test_a_pod_that_is_over_gives_its_card_free_before_the_next_listing(node: Node) -> None:
    pod = bound("p")
    node.pods.upsert(pod)
    node.give(IDS, pod)
    node.hold(pod, IDS)
    await look(node)
    node.occupancy.recount()
    assert node.inventory.state.held == HeldDevices(IDS)
    node.pods.upsert(replace(pod, is_terminal=True))
    node.occupancy.recount()
    assert node.inventory.state.held == HeldDevices()
    node.pods.delete(replace(pod, is_terminal=True))
    node.occupancy.recount()
    assert node.inventory.state.held == HeldDevices()
    node.pods.upsert(bound("p", uid="next"))
    node.occupancy.recount()
    assert node.inventory.state.held == HeldDevices(IDS), "the name stands for somebody who runs"


async def test_who_was_deleted_by_force_still_counts(node: Node) -> None:
    stray = bound("stray")
    node.hold(stray, slices(0, 7))
    await look(node)
    whole = bound("whole", container(gpu=1))
    node.pods.upsert(whole)
    node.give(frozenset({uuid(0)}), whole, resource=names.CARD)
    node.kubelet.held[whole.key] = {"main": {names.CARD: frozenset({uuid(0)})}}
    refusal = await node.prover.prove(names.CARD, frozenset({uuid(0)}))
    assert refusal is not None
    assert refusal.reason == Reason.CARD_IN_USE
    del node.kubelet.held[stray.key]
    await look(node)
    assert await node.prover.prove(names.CARD, frozenset({uuid(0)})) is None


async def test_a_pod_deleted_while_it_is_admitted_holds_nobody_up(node: Node, share: Any) -> None:
    """The kubelet still lists it, and neither the watch nor the API server knows it."""
    node.kubelet.held[share("gone", 10).key] = {"main": {}}
    started = asyncio.get_running_loop().time()
    ids = await node.preferred.prefer(names.SLICE, slices(0, *range(8)), [], 4)
    assert len(ids) == 4
    assert asyncio.get_running_loop().time() - started < DEADLINE_S / 2
    assert node.server.fetched == [share("gone", 10).key]
