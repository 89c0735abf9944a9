"""Connects the parts of the extender: first what the watches feed, then what changes the cluster if a leader may.

The second step needs a leadership, and a leadership needs the watches of the first step.
"""

import asyncio
import gc
import logging
from collections.abc import Callable, Coroutine, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from extender import metrics
from extender.app import SchedulerVerbs
from extender.clocks import Clocks
from extender.effects.event_recorder import EventRecorder
from extender.effects.evictor import Evictor
from extender.effects.node_refusals import NodeRefusals
from extender.effects.waker import Waker
from extender.explain.explanations import Explanations
from extender.explain.last_decisions import LastDecisions
from extender.explain.unschedulable import UnschedulablePods
from extender.gangs.bind_gate import BindGate
from extender.gangs.candidate_nodes import NodeSearch
from extender.gangs.deadlines import GangDeadlines
from extender.gangs.job_owners import JobOwners
from extender.gangs.known_gangs import GangTimes
from extender.gangs.member_filter import MemberFilter
from extender.gangs.plan_maker import PlanMaker
from extender.gangs.room_holding import HoldTimes, RoomHolding
from extender.gangs.tracker import GangTracker
from extender.history import lag
from extender.history.recording import feed
from extender.history.recording.feed import Feed
from extender.history.recording.recorder import NO_RECORDER, HistoryRecorder
from extender.history.reporting import prices
from extender.history.reporting.prices import Prices
from extender.idle import actions as idle_actions
from extender.idle import namespaces
from extender.idle.actions import Means
from extender.idle.namespaces import Namespaces
from extender.idle.sizes import Sizes
from extender.idle.watcher import IdleWatcher
from extender.lead.leader import Leader
from extender.metrics import VerbMetrics
from extender.settings import ExtenderSettings
from extender.state import budgets, pod_groups, weights_file
from extender.state.budgets import Budgets
from extender.state.cluster import Cluster
from extender.state.leases import Leases
from extender.state.pod_reader import PodReader
from extender.state.room import ClusterRoom
from extender.verbs.bind import Binder
from extender.verbs.filter import Filter
from extender.verbs.preempt import Preemption
from extender.watch.gpunode_watch import GpuNodeWatch
from extender.watch.lease_watch import LeaseWatch, SchedulerLeaseWatch
from extender.watch.node_watch import NodeWatch
from extender.watch.pod_watch import PodWatch
from extender.watch.watches import WatchedKind, Watches
from vgpu.adapters.kubernetes.client import KubernetesClient
from vgpu.adapters.metrics import Registry
from vgpu.domain import names
from vgpu.domain.asks.gang import GangSource

Run = Callable[[], Coroutine[Any, Any, None]]

GC_WHILE_LISTING: Final = 200_000  # allocations between two collections

log = logging.getLogger(__name__)


class Observers:
    """The state of the cluster, and everything else that the watches feed.

    `jitter` returns a random number from 0 to 1. `history` takes what happens; `replica` names this process there.
    """

    def __init__(
        self,
        client: KubernetesClient,
        settings: ExtenderSettings,
        clocks: Clocks,
        jitter: Callable[[], float],
        history: HistoryRecorder = NO_RECORDER,
        replica: str = "",
    ) -> None:
        """Connect the watches with what they feed.

        Raises:
            UnusableSetting: the file with the weights cannot be used.
        """
        defaults, now, clock, sleep = settings.defaults, clocks.now, clocks.monotonic, clocks.sleep
        self.client = client
        self.settings = settings
        self.clocks = clocks
        self.registry = Registry()
        self.reader = PodReader()
        self.cluster = Cluster(settings.slice_mib, clock, weights_file.read(settings.packing_weights))
        is_near = settings.scheduler_lease_at[0] == settings.namespace
        self.scheduler_leases = self.cluster.leases if is_near else Leases(clock)
        pods = self.cluster.objects.pods
        self.budgets = Budgets()
        self.decisions = LastDecisions(clocks.now_ms)
        self.recorder = EventRecorder(client, clock, now)
        self.waker = Waker(client, self.cluster, defaults, clock, now, sleep)
        self.gangs = GangTracker(self.cluster, self.waker, GangTimes(clock, clocks.now_ms, settings.gang_deadline_s))
        explaining_filter = Filter(self.cluster, defaults, cached_requests=1)
        self.unschedulable = UnschedulablePods(self.cluster, explaining_filter, self.recorder, clock, self.gangs)
        self.refusals = NodeRefusals(
            client, pods, self.reader, self.recorder, sleep,
            evicts_uninvited=settings.uninvited == "evict", spared=("kube-system", settings.namespace),
        )  # fmt: skip
        self.namespaces = Namespaces(self.recorder)
        self.idle = IdleWatcher(
            client, pods, self.namespaces, self.recorder, lambda: int(clock() * 1e9), now,
            grace_s=settings.idle_grace, acts=settings.idle == "act", gang_of=self.cluster.objects.gangs.of_pod,
        )  # fmt: skip
        self.prices = prices.read(settings.prices) if settings.prices else Prices()
        self.is_admin_up: Callable[[], bool | None] = lambda: None  # the admin's process is made after the actors
        self.lease_annotations = dict[str, str]()  # what the Lease of this replica says beside its holder
        self.history = Feed(history, self.cluster.objects.gpunodes, clocks.now_ms, replica)
        self.history_lag = lag.reader(history, settings.history_dir, clocks.now_ms)
        self.watches = Watches(client, jitter, self._kinds())

    def _kinds(self) -> Iterator[WatchedKind]:
        cluster, recorder, waker, groups = self.cluster, self.recorder, self.waker, self.gangs.known.pod_groups
        yield PodWatch(cluster, self.reader, self.unschedulable, recorder, waker, self.history, self.idle).kind
        yield NodeWatch(cluster, waker).kind
        yield GpuNodeWatch(cluster, recorder, self.refusals, waker, self.history, self.idle).kind
        yield LeaseWatch(cluster.leases, waker, self.settings.namespace).kind
        if self.scheduler_leases is not cluster.leases:
            yield SchedulerLeaseWatch(self.scheduler_leases, *self.settings.scheduler_lease_at).kind
        yield WatchedKind("poddisruptionbudgets", budgets.PATH, self.budgets, budgets.decode)
        yield WatchedKind(
            "podgroups.scheduling.x-k8s.io", names.COSCHEDULING_GROUPS_PATH, groups[GangSource.COSCHEDULING],
            pod_groups.of_coscheduling, is_optional=True,
        )  # fmt: skip
        yield WatchedKind(
            "podgroups.scheduling.k8s.io", names.KUBERNETES_GROUPS_PATH, groups[GangSource.KUBERNETES],
            pod_groups.of_kubernetes, is_optional=True,
        )  # fmt: skip
        yield WatchedKind("namespaces", namespaces.PATH, self.namespaces, namespaces.decode)

    @property
    def is_synced(self) -> bool:
        """Whether every watch has had its first list, and the index has its rows: before that no verb may answer."""
        return self.watches.is_synced and self.cluster.rows.is_written

    async def run(self, late: Iterable[Run] = ()) -> None:
        """Watch until cancelled; `late` begins when the first lists are complete."""
        async with asyncio.TaskGroup() as group:
            often = gc.get_threshold()
            gc.set_threshold(GC_WHILE_LISTING)  # of what the first lists allocate little is garbage
            group.create_task(self.watches.run())
            group.create_task(self.recorder.run())
            await self.watches.wait()
            gc.freeze()  # the objects of the first lists stay: a full collection of 5,000 nodes' took 80 ms
            gc.set_threshold(*often)
            log.info("the first lists are complete")
            self.history.begin(self.cluster.objects.pods.values())
            group.create_task(self.cluster.rows.run())
            group.create_task(self.unschedulable.run())
            group.create_task(self._mark_history())
            for run in late:
                group.create_task(run())

    async def _mark_history(self) -> None:
        while True:
            heard_at = self.watches.pods.heard_at
            if heard_at is not None:
                self.history.mark(asyncio.get_running_loop().time() - heard_at)
            await self.clocks.sleep(feed.MARK_S)


@dataclass(frozen=True, slots=True)
class Actors:
    """The verbs, and the tasks that change the cluster as long as the leader may."""

    verbs: SchedulerVerbs
    tasks: tuple[Run, ...]


def actors(seen: Observers, leader: Leader) -> Actors:
    """Connect the verbs and the tasks with the state of the cluster."""
    defaults, clocks, pods = seen.settings.defaults, seen.clocks, seen.cluster.objects.pods
    room = ClusterRoom(seen.cluster, defaults)
    candidates = NodeSearch(seen.cluster, room, defaults)
    plan_maker = PlanMaker(seen.gangs, candidates, defaults, leader, clocks.monotonic)
    node_filter = Filter(seen.cluster, defaults, gangs=MemberFilter(seen.gangs, plan_maker, leader))
    gate = BindGate(seen.gangs, leader)
    binder = Binder(
        client=seen.client,
        pods=pods,
        reader=seen.reader,
        reservations=seen.cluster.reservations,
        node_filter=node_filter,
        leader=leader,
        history=seen.history,
        gate=gate,
        sleep=clocks.sleep,
        owners=JobOwners(seen.client),
    )
    evictor = Evictor(seen.client, seen.recorder, clocks.now)
    hold_times = HoldTimes(seen.settings.gang_hold_after_s, seen.settings.gang_hold_s)
    holding = RoomHolding(seen.gangs, seen.waker, defaults, hold_times, clocks.monotonic)
    deadlines = GangDeadlines(seen.gangs, leader, evictor, seen.recorder, clocks.sleep, holding)
    preemption = Preemption(pods, room, seen.budgets, leader, evictor, clocks.monotonic, clocks.sleep)
    parts = _parts(seen, leader, holding)
    seen.registry.add(lambda: metrics.families(parts))
    verbs = SchedulerVerbs(
        reader=seen.reader,
        cluster=seen.cluster,
        node_filter=node_filter,
        defaults=defaults,
        binder=binder,
        recorder=seen.recorder,
        preemption=preemption,
        history=seen.history,
        metrics=VerbMetrics(seen.registry),
        gangs=seen.gangs,
        decisions=seen.decisions,
        explanations=Explanations(seen.cluster, node_filter, seen.recorder),
    )
    tasks = (
        preemption.run,
        deadlines.run,
        lambda: seen.refusals.run(leader),
        lambda: seen.waker.run(leader),
        lambda: _handle_idle(seen, leader),
    )
    return Actors(verbs, tasks)


async def _handle_idle(seen: Observers, leader: Leader) -> None:
    """Warn idle pods, and act on them, as long as the leader may."""
    sizes = Sizes(seen.client, seen.settings.namespace)
    means = Means(
        seen.client,
        seen.cluster.objects.pods,
        seen.namespaces,
        seen.recorder,
        sizes,
        seen.idle.is_due,
        seen.clocks.now,
    )
    counter = seen.registry.counter(metrics.IDLE)
    await seen.idle.run(leader, idle_actions.actions(means), lambda action, outcome: counter(action, outcome).inc())


def _parts(seen: Observers, leader: Leader, holding: RoomHolding) -> metrics.ExtenderParts:
    return metrics.ExtenderParts(
        cluster=seen.cluster,
        leader=leader,
        gangs=seen.gangs,
        holding=holding,
        watches=seen.watches.by_name,
        recorder=seen.recorder,
        unschedulable=seen.unschedulable,
        refusals=seen.refusals,
        idle=seen.idle,
        history=seen.history_lag,
        clock=seen.clocks.monotonic,
        decisions=seen.decisions,
        prices=seen.prices,
        now_ms=seen.clocks.now_ms,
        is_admin_up=lambda: seen.is_admin_up(),  # noqa: PLW0108 - it is replaced later
    )
