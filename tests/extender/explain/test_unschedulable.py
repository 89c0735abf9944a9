"""Pods that kube-scheduler refused by itself: equal ones are judged once, in slices of time."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest
from msgspec import structs

from extender.effects import event_recorder
from extender.effects.event_recorder import EventRecorder
from extender.explain import pending_text, unschedulable
from extender.explain.unschedulable import UnschedulablePods
from extender.state.cluster import Cluster
from extender.state.objects import GpuNode, KubeNode, WatchedLease, WatchedPod
from extender.state.pod_reader import PodReader
from extender.verbs import placement_cache
from extender.verbs.filter import Filter
from extender.verbs.verdict import FilterVerdict, Placement
from tests import strategies
from tests.extender.conftest import Clock
from tests.extender.gangs import gangs
from vgpu.domain import names
from vgpu.domain.asks import node_rules
from vgpu.domain.cards.device import Node
from vgpu.domain.cards.reasons import Reason
from vgpu.domain.identifiers import NodeName
from vgpu.placement.choose import NodeRefusal
from vgpu.placement.policies import DefaultPolicies

N00 = NodeName("n00")

NODES = 40
STEP_S = 0.001  # what judging one node costs


class SlowFilter(Filter):
    """Judges a node in a millisecond of the test's clock."""

    judged = 0

    def __init__(self, cluster: Cluster, clock: Clock) -> None:
        super().__init__(cluster, DefaultPolicies())
        self._clock = clock

    def placement(self, pod: WatchedPod) -> Callable[[str], Placement]:
        on = super().placement(pod)

        def slow(name: str) -> Placement:
            self._clock.seconds += STEP_S
            self.judged += 1
            return on(NodeName(name))

        return slow


class Messages(EventRecorder):
    """Records without posting."""

    def __init__(self) -> None:
        self.by_uid: dict[str, list[str]] = {}
        self.resting: set[str] = set()

    def rests(self, uid: str) -> bool:
        return uid in self.resting

    def record(self, about: Mapping[str, str], _: str, message: str) -> None:
        self.by_uid.setdefault(about["uid"], []).append(message)


class Site:
    def __init__(self) -> None:
        self.clock = Clock()
        self.cluster = Cluster(256, self.clock)
        self.slices: list[float] = []
        self.rested = asyncio.Event()
        for n in range(NODES):
            self.add_node(f"n{n:02}", n)
        self.messages = Messages()
        self.filter = SlowFilter(self.cluster, self.clock)
        tracker = gangs.tracker(self.cluster)
        self.pods = UnschedulablePods(self.cluster, self.filter, self.messages, self.clock, tracker, self.sleep)
        self._woke = self.clock()

    def add_node(self, name: str, index: int, *, cordoned: bool = False) -> None:
        node = Node(NodeName(name), 256, (strategies.card(index, 1024, cordoned=cordoned),))
        self.cluster.updates.upsert_gpunodes(GpuNode(node, name, "2026-01-01T00:00:00Z"))
        self.cluster.updates.upsert_nodes(KubeNode(NodeName(name), {names.SLICE: 4}))
        self.cluster.leases.put(WatchedLease(names.node_lease(NodeName(name)), name, "x", 3600))

    async def sleep(self, seconds: float) -> None:
        if seconds == unschedulable.AGAIN_S:
            await asyncio.sleep(3600)
        if seconds == event_recorder.MIN_INTERVAL_S:
            await self.rested.wait()
            self.rested.clear()
            return
        self.slices.append(self.clock() - self._woke)
        await asyncio.sleep(0)
        self.clock.seconds += seconds
        self._woke = self.clock()

    def add(self, uid: str, memory: int, namespace: str = "default") -> None:
        obj = strategies.admit(strategies.pod(strategies.container(gpu_mem=memory), uid=uid))
        obj["metadata"]["namespace"] = namespace
        pod = structs.replace(PodReader().decoded(obj), is_unschedulable=True)
        self.cluster.updates.upsert_pod(pod)
        self.pods.add(pod)

    async def run(self) -> None:
        running = asyncio.create_task(self.pods.run())
        for _ in range(1000):
            await asyncio.sleep(0)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def test_equal_requests_are_judged_once_and_every_pod_is_told() -> None:
    site = Site()
    for n in range(50):
        site.add(f"u{n}", 2048)
    site.add("other", 4096)
    await site.run()
    assert site.filter.judged == 2 * NODES
    assert len(site.messages.by_uid) == 51
    assert len({messages[0] for messages in site.messages.by_uid.values()}) == 2


async def test_a_crowd_of_different_pods_delays_the_pod_of_another_namespace_by_one_explanation() -> None:
    site = Site()
    for n in range(100):
        site.add(f"u{n}", 2048 + n, "crowd")
    site.add("mine", 4096)
    await site.run()
    assert list(site.messages.by_uid).index("mine") == 1
    assert len(site.messages.by_uid) == 101
    assert not site.pods.waiting


async def test_equal_pods_of_many_namespaces_are_judged_once() -> None:
    site = Site()
    for n in range(10):
        site.add(f"u{n}", 2048, f"team-{n}")
    site.add("late", 4096, "team-0")
    await site.run()
    assert site.filter.judged == 2 * NODES
    assert len(site.messages.by_uid) == 11


async def test_a_pod_that_had_an_event_just_now_is_explained_again_later() -> None:
    site = Site()
    site.messages.resting = {"u1"}
    site.add("u1", 2048)
    await site.run()
    assert site.messages.by_uid == {}
    site.messages.resting = set()
    site.rested.set()
    await site.run()
    assert len(site.messages.by_uid["u1"]) == 1


async def test_the_event_loop_is_given_back_after_each_slice() -> None:
    site = Site()
    for n in range(20):
        site.add(f"u{n}", 2048 + n)
    await site.run()
    assert site.filter.judged == 20 * NODES
    assert max(site.slices) <= unschedulable.SLICE_S + STEP_S * 1.5


async def test_a_pod_that_fits_somewhere_costs_no_further_judging() -> None:
    site = Site()
    site.add("u1", 512)
    await site.run()
    assert (site.filter.judged, site.messages.by_uid) == (1, {})


async def test_what_can_be_cured_comes_first_also_where_other_nodes_are_many() -> None:
    """A pod that names one card, which is cordoned: the other nodes only say that they have other cards."""
    site = Site()
    site.add_node("z", 99, cordoned=True)
    assert len(site.cluster.objects.gpunodes) > pending_text.MAX_NODES
    obj = strategies.pod(strategies.container(gpu_mem=256), annotations={names.USE_GPU_UUID: "GPU-99"})
    pod = PodReader().decoded(strategies.admit(obj))
    judge = Filter(site.cluster, DefaultPolicies())
    answer = await judge.judge(pod, list(site.cluster.objects.gpunodes), asyncio.sleep)
    verdict = judge.nodes(pod, pending_text.first(answer))
    code, message = pending_text.why_pending(pod, answer.reasons, verdict.refused, site.cluster)
    assert code == "CardCordoned"
    said = "z: card 99 CardCordoned (1 GiB and 100 % of compute free); n00: card 0 GpuUuidMismatch"
    assert message.startswith(f"needs 256 MiB on 1 card; {said}")


def test_what_is_free_of_a_card_in_use_says_what_it_counts() -> None:
    """`(76 GiB, 100 % free)` read as if a card in use were free."""
    site = Site()
    node = Node(N00, 256, (strategies.card(0, 1024, held_slices=1),))
    site.cluster.updates.upsert_gpunodes(GpuNode(node, "n00", "2026-01-01T00:00:00Z"))
    pod = PodReader().decoded(strategies.admit(strategies.pod(strategies.container(gpu=1))))
    verdict = Filter(site.cluster, DefaultPolicies()).nodes(pod, [N00])
    _, message = pending_text.why_pending(pod, verdict.reasons, verdict.refused, site.cluster)
    assert message == "needs 1 card whole; n00: card 0 CardInUse (768 MiB and 100 % of compute free)"


def test_the_most_frequent_reason_comes_first_and_few_nodes_are_named() -> None:
    site = Site()
    pod = PodReader().decoded(strategies.admit(strategies.pod(strategies.container(gpu_mem=2048))))
    refused = {NodeName(f"n{n:04}"): NodeRefusal(Reason.PLUGIN_AWAY) for n in range(3000)}
    refused |= {NodeName(f"m{n}"): NodeRefusal(Reason.NO_INVENTORY) for n in range(2999)}
    code, message = pending_text.why_pending(pod, FilterVerdict([], refused).reasons, refused, site.cluster)
    assert code == "PluginAway"
    assert message.startswith("needs 2 GiB on 1 card; n0000: PluginAway")
    assert message.endswith("and more nodes")
    assert len(message) < 1000


def test_a_node_that_is_deleted_while_others_are_judged_is_named_without_its_cards() -> None:
    site = Site()
    pod = PodReader().decoded(strategies.admit(strategies.pod(strategies.container(gpu_mem=2048))))
    verdict = Filter(site.cluster, DefaultPolicies()).nodes(pod, [N00])
    site.cluster.updates.delete_gpunodes(N00)
    assert "n00: CardTooSmall" in pending_text.why_pending(pod, verdict.reasons, verdict.refused, site.cluster)[1]


def test_the_cache_of_placements_forgets_requests_and_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(placement_cache, "MAX_NODES", NODES)
    site = Site()
    node_filter = Filter(site.cluster, DefaultPolicies(), cached_requests=2)
    for memory in (1, 2, 3):
        pod = PodReader().decoded(strategies.admit(strategies.pod(strategies.container(gpu_mem=memory))))
        assert len(node_filter.nodes(pod, list(site.cluster.objects.gpunodes)).fitting) == NODES
    cached = node_filter._cache._placements
    assert len(cached) == 2
    for n in range(NODES, 3 * NODES):
        site.add_node(f"n{n:02}", n)
        node_filter.node(pod, NodeName(f"n{n:02}"))
    assert max(verdict.most_grants for verdict in cached.values()) <= NODES + 1


async def test_a_taint_is_said_in_the_event_after_the_schedulers_words() -> None:
    """Every card is full too, but kube-scheduler never looks at cards of a node whose taint is not tolerated."""
    site = Site()
    marks = node_rules.of_node({"spec": {"taints": [{"key": "gpu", "effect": "NoSchedule"}]}})
    for node in list(site.cluster.objects.nodes.values()):
        site.cluster.updates.upsert_nodes(replace(node, marks=marks))
    said = "0/40 nodes are available: 40 node(s) had untolerated taint(s). preemption: 0/40 nodes are available."
    obj = strategies.admit(strategies.pod(strategies.container(gpu_mem=256), uid="u1"))
    pod = structs.replace(PodReader().decoded(obj), is_unschedulable=True, scheduler_message=said)
    site.cluster.updates.upsert_pod(pod)
    site.pods.add(pod)
    await site.run()
    (message,) = site.messages.by_uid["u1"]
    assert message.startswith(
        "kube-scheduler: 0/40 nodes are available: 40 node(s) had untolerated taint(s); needs 256 MiB on 1 card; "
        "n00: NodeTainted: the node has a taint that the pod does not tolerate"
    )
