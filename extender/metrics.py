"""The extender's metrics: how long the verbs take, what they answer, and what the watches and queues hold.

A metric that is read is declared once, with how its value is read (`READ`); what is counted where it happens is in
`COUNTED`. The labels have values from closed sets, so that tenants add no series: there are at most 200. In addition
there is one series for each node that cannot be used, each card that is closed, and each model with a price.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import vgpu
from extender.effects.event_recorder import EventRecorder
from extender.effects.node_refusals import NodeRefusals
from extender.explain import waiting_reason
from extender.explain.last_decisions import LastDecisions
from extender.explain.unschedulable import UnschedulablePods
from extender.gangs.room_holding import RoomHolding
from extender.gangs.tracker import GangTracker
from extender.history.lag import Lag
from extender.history.reporting.prices import Prices
from extender.idle.watcher import IdleWatcher
from extender.lead.leader import Leader
from extender.state.cluster import Cluster
from extender.state.objects import GpuNode
from vgpu.adapters.kubernetes.reflector import Reflector
from vgpu.adapters.metrics import Metric, MetricFamily, MetricKind, Registry
from vgpu.domain.cards.device import Card
from vgpu.domain.cards.reasons import Reason

Sample = tuple[tuple[str, ...], float]  # the values of the labels, and the metric's

VERB_SECONDS: Final = Metric("vgpu_extender_verb_seconds", MetricKind.HISTOGRAM, "Time of a verb, by verb", ("verb",))
FAILURES: Final = Metric(
    "vgpu_extender_verb_failures_total",
    MetricKind.COUNTER,
    "Calls without an answer, by verb and reason: not_ready, malformed, too_long, disconnected",
    ("verb", "reason"),
)
UNPLACED: Final = Metric(
    "vgpu_extender_unplaced_total",
    MetricKind.COUNTER,
    "Filter calls for which no node fits, once for each reason that refused a node",
    ("reason",),
)
BINDS: Final = Metric(
    "vgpu_extender_binds_total", MetricKind.COUNTER, "Bind calls, by result: bound, refused", ("result",)
)
IDLE: Final = Metric(
    "vgpu_extender_idle_actions_total",
    MetricKind.COUNTER,
    "Reports of idle pods, by the action that was asked for and its outcome: warned, done, refused, error",
    ("action", "outcome"),
)

COUNTED: Final = (VERB_SECONDS, FAILURES, UNPLACED, BINDS, IDLE)
BUCKETS: Final = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5)
LATE_MS: Final = 180_000  # nodes report each minute
VERBS: Final = ("filter", "prioritize", "preempt", "bind")


class VerbMetrics:
    """What the verbs count."""

    def __init__(self, registry: Registry) -> None:
        seconds = registry.histogram(VERB_SECONDS, BUCKETS)
        self._seconds = {verb: seconds(verb) for verb in VERBS}
        self._failures = registry.counter(FAILURES)
        self._unplaced = registry.counter(UNPLACED)
        binds = registry.counter(BINDS)
        self._bound, self._refused = binds("bound"), binds("refused")

    def took(self, verb: str, seconds: float) -> None:
        """Take the time of a call that was answered."""
        self._seconds[verb].observe(seconds)

    def failed(self, verb: str, reason: str) -> None:
        """Count a call without an answer."""
        self._failures(verb, reason).inc()

    def unplaced(self, reasons: Iterable[Reason]) -> None:
        """Count a filter call for which no node fits, with the reasons that refused any."""
        for reason in reasons:
            self._unplaced(str(reason)).inc()

    def bound(self, refusal: str) -> None:
        """Count a bind call; `refusal` is empty where the pod was bound."""
        (self._refused if refusal else self._bound).inc()


@dataclass(frozen=True, slots=True)
class ExtenderParts:
    """The parts that metrics are read from, in the event loop.

    Attributes:
        cluster: what the watches know.
        leader: whether this replica binds.
        gangs: what is known of them.
        holding: the cards on which room is kept free for gangs.
        watches: by name.
        recorder: Events that wait to be posted.
        unschedulable: pods that wait for an explanation.
        refusals: reports of nodes that wait to be posted.
        idle: idle pods that wait to be handled.
        history: how far the history's database is behind; returns None where no history is kept.
        clock: the event loop's time in seconds.
        decisions: the last decision on each pod that no node could take.
        prices: of cards, by model.
        now_ms: the wall clock, Unix milliseconds.
        is_admin_up: whether the admin REST's process runs; returns None where it is off.
    """

    cluster: Cluster
    leader: Leader
    gangs: GangTracker
    holding: RoomHolding
    watches: Mapping[str, Reflector]
    recorder: EventRecorder
    unschedulable: UnschedulablePods
    refusals: NodeRefusals
    idle: IdleWatcher
    history: Callable[[], Lag | None]
    clock: Callable[[], float]
    decisions: LastDecisions
    prices: Prices
    now_ms: Callable[[], int]
    is_admin_up: Callable[[], bool | None]


@dataclass(frozen=True, slots=True)
class ReadMetric:
    """A metric, and how its values are read of the parts."""

    metric: Metric
    read: Callable[[ExtenderParts], Sequence[Sample]]


def _gauge(
    name: str, text: str, read: Callable[[ExtenderParts], Sequence[Sample]], labels: tuple[str, ...] = ()
) -> ReadMetric:
    return ReadMetric(Metric(name, MetricKind.GAUGE, text, labels), read)


def _counter(
    name: str, text: str, read: Callable[[ExtenderParts], Sequence[Sample]], labels: tuple[str, ...] = ()
) -> ReadMetric:
    return ReadMetric(Metric(name, MetricKind.COUNTER, text, labels), read)


def _by_label(values: Mapping[str, float]) -> list[Sample]:
    return [((name,), value) for name, value in values.items()]


def _of_history(read: Callable[[Lag], Mapping[str, float]]) -> Callable[[ExtenderParts], list[Sample]]:
    """Return how a metric of the history is read: without values where no history is kept."""

    def values(parts: ExtenderParts) -> list[Sample]:
        lag = parts.history()
        return _by_label(read(lag)) if lag else []

    return values


def _history_up(parts: ExtenderParts) -> list[Sample]:
    lag = parts.history()
    return [((), not lag.error)] if lag else []


def _objects(parts: ExtenderParts) -> list[Sample]:
    objects = parts.cluster.objects
    counts = {"pods": len(objects.pods), "nodes": len(objects.nodes), "gpunodes": len(objects.gpunodes)}
    return _by_label(counts)


def _queues(parts: ExtenderParts) -> list[Sample]:
    return _by_label(
        {
            "events": parts.recorder.waiting,
            "explanations": parts.unschedulable.waiting,
            "node_reports": parts.refusals.waiting,
            "idle_pods": parts.idle.waiting,
        }
    )


def _ages(parts: ExtenderParts) -> list[Sample]:
    heard = [(name, watch.heard_at) for name, watch in parts.watches.items()]
    return [((name,), parts.clock() - heard_at) for name, heard_at in heard if heard_at is not None]


def _pending(parts: ExtenderParts) -> list[Sample]:
    """Count waiting pods by reason, where this replica binds: the other one is not asked, and knows no reasons."""
    if parts.leader.refusal():
        return []
    pods = parts.cluster.objects.pods
    counted = Counter(waiting_reason.of(pods[uid], parts.decisions.get(uid)) for uid in parts.cluster.objects.waiting)
    return _by_label({reason: counted[reason] for reason in waiting_reason.ALL})


def _blocked_nodes(parts: ExtenderParts) -> list[Sample]:
    states = parts.cluster.states
    judged = [(name, states.unusable(name)) for name in parts.cluster.objects.gpunodes]
    return [((name, str(reason)), 1) for name, reason in judged if reason is not None]


def _late_reports(parts: ExtenderParts) -> list[Sample]:
    now_ms, states = parts.now_ms(), parts.cluster.states
    ages = [(name, _report_age_ms(gpunode, now_ms)) for name, gpunode in parts.cluster.objects.gpunodes.items()]
    return [((name,), age / 1000) for name, age in ages if age > LATE_MS and states.blocked(name) is None]


def _report_age_ms(gpunode: GpuNode, now_ms: int) -> int:
    """Return the age of a node's newest report, or 0 where it is not late, or where there never was one."""
    reports = gpunode.card_use
    if not reports or any(now_ms - use.until_ms <= LATE_MS for use in reversed(reports)):
        return 0
    return now_ms - max(use.until_ms for use in reports)


def _closed_cards(parts: ExtenderParts) -> list[Sample]:
    gpunodes = parts.cluster.objects.gpunodes.values()
    cards = [(gpunode.node.name, card) for gpunode in gpunodes for card in gpunode.node.cards]
    return [
        ((node, card.uuid, str(card.index), card.model, str(reason)), 1)
        for node, card in cards
        if (reason := _closed_for(card)) is not None
    ]


def _closed_for(card: Card) -> Reason | None:
    """Return why a card takes no new containers, or whole-card ones only, whatever is free on it."""
    if not card.healthy:
        return Reason.CARD_UNHEALTHY
    if card.cordoned:
        return Reason.CARD_CORDONED
    return Reason.CARD_EXCLUSIVE if card.exclusive_process else None


def _admin_up(parts: ExtenderParts) -> list[Sample]:
    is_up = parts.is_admin_up()
    return [] if is_up is None else [((), is_up)]


def _prices(parts: ExtenderParts) -> list[Sample]:
    return [((model, parts.prices.currency), price) for model, price in parts.prices.card_hour.items()]


READ: Final = (
    _gauge("vgpu_extender_info", "1, with the version of the extender", lambda _: [((vgpu.__version__,), 1)],
           ("version",)),
    _gauge("vgpu_extender_leader", "1 while this replica binds", lambda parts: [((), not parts.leader.refusal())]),
    _gauge("vgpu_extender_objects", "Objects in memory, by kind", _objects, ("kind",)),
    _gauge("vgpu_extender_reservations", "Pods whose Binding is in flight",
           lambda parts: [((), len(parts.cluster.reservations))]),
    _gauge("vgpu_extender_pending_pods",
           "Pods that wait for a node, by the first reason of the last decision (NotTried: none yet); no value while "
           "this replica does not bind", _pending, ("reason",)),
    _gauge("vgpu_extender_blocked_nodes", "1 for a node with GPUs that no pod is placed on, and why", _blocked_nodes,
           ("node", "reason")),
    _gauge("vgpu_extender_late_report_seconds",
           "Age of a node's last report of what its cards used, by the node's clock, where it is above three minutes "
           "and the device plugin renews its Lease", _late_reports, ("node",)),
    _gauge("vgpu_extender_closed_cards",
           "1 for a card that takes no new containers (CardUnhealthy, CardCordoned), or containers with the whole card "
           "only (CardExclusive)", _closed_cards, ("node", "gpu_uuid", "gpu_index", "model", "reason")),
    _gauge("vgpu_extender_admin_up", "1 while the process of the admin REST runs; no value where it is off", _admin_up),
    _gauge("vgpu_extender_card_hour_price",
           "Price of a card for an hour, by model, of the setting prices; model is default for models that it does not "
           "list", _prices, ("model", "currency")),
    _gauge("vgpu_extender_gangs",
           "Gangs by state: waiting, planned (cards are reserved), partial (some pods are bound), started",
           lambda parts: _by_label(parts.gangs.known.count_by_phase()), ("state",)),
    _counter("vgpu_extender_gang_plans_total",
             "Plans of gangs that ended, by outcome: started, dropped (a pod went, or the cards no longer suffice), "
             "expired (a pod did not come before the deadline), evicted (some pods were bound without the others)",
             lambda parts: _by_label(parts.gangs.plans.outcomes), ("outcome",)),
    _gauge("vgpu_extender_gang_held_cards",
           "Cards on which room is kept free for a gang that has waited for long",
           lambda parts: [((), parts.holding.cards)]),
    _counter("vgpu_extender_gang_holds_total",
             "Times that room was kept free for a gang, by how it ended: planned, expired (other pods did not leave in "
             "time), dropped (a pod went, or this replica no longer leads), impossible (the gang does not fit the "
             "empty cluster)", lambda parts: _by_label(parts.holding.outcomes), ("outcome",)),
    _gauge("vgpu_extender_watch_synced", "1 after the first list of a watch",
           lambda parts: [((name,), watch.synced.is_set()) for name, watch in parts.watches.items()], ("watch",)),
    _gauge("vgpu_extender_watch_age_seconds",
           "Time since a watch last heard of the API server, which sends a bookmark about each minute, and is asked "
           "again after two minutes of silence", _ages, ("watch",)),
    _counter("vgpu_extender_unreadable_objects_total", "Objects that a watch has skipped",
             lambda parts: [((name,), watch.unreadable) for name, watch in parts.watches.items()], ("watch",)),
    _gauge("vgpu_extender_queue_length", "Entries that are not done yet, by queue", _queues, ("queue",)),
    _gauge("vgpu_extender_history_waiting_records",
           "Records of the history that are not in the database yet: in memory, or on disk",
           _of_history(lambda lag: {"memory": lag.queued, "disk": lag.waiting}), ("where",)),
    _counter("vgpu_extender_history_lost_records_total",
             "Records of the history that are lost, by cause: dropped (no room), unreadable, refused (by the database)",
             _of_history(lambda lag: {"dropped": lag.dropped, "unreadable": lag.unreadable, "refused": lag.refused}),
             ("cause",)),
    _gauge("vgpu_extender_history_up", "1 while the disk and the database of the history take records", _history_up),
)  # fmt: skip
CATALOGUE: Final = (*COUNTED, *(declared.metric for declared in READ))


def families(parts: ExtenderParts) -> Iterable[MetricFamily]:
    """Return the values of the metrics that are read."""
    return (MetricFamily(declared.metric, declared.read(parts)) for declared in READ)
