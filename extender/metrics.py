"""The extender's metrics: how long the verbs take, what they answer, and what the watches and queues hold.

The labels have values from closed sets only: there are at most 180 series.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

import vgpu
from extender.history.lag import Lag
from vgpu.adapters.kubernetes.reflector import Reflector
from vgpu.adapters.metrics import Metric, MetricFamily, MetricKind, Registry
from vgpu.domain.cards.reasons import Reason

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
INFO: Final = Metric("vgpu_extender_info", MetricKind.GAUGE, "1, with the version of the extender", ("version",))
LEADER: Final = Metric("vgpu_extender_leader", MetricKind.GAUGE, "1 while this replica binds")
OBJECTS: Final = Metric("vgpu_extender_objects", MetricKind.GAUGE, "Objects in memory, by kind", ("kind",))
RESERVATIONS: Final = Metric("vgpu_extender_reservations", MetricKind.GAUGE, "Pods whose Binding is in flight")
GANGS: Final = Metric(
    "vgpu_extender_gangs",
    MetricKind.GAUGE,
    "Gangs by state: waiting, planned (cards are reserved), partial (some pods are bound), started",
    ("state",),
)
GANG_PLANS: Final = Metric(
    "vgpu_extender_gang_plans_total",
    MetricKind.COUNTER,
    "Plans of gangs that ended, by outcome: started, dropped (a pod went, or the cards no longer suffice), expired (a "
    "pod did not come before the deadline), evicted (some pods were bound without the others)",
    ("outcome",),
)
HELD_CARDS: Final = Metric(
    "vgpu_extender_gang_held_cards",
    MetricKind.GAUGE,
    "Cards on which room is kept free for a gang that has waited for long",
)
HOLDS: Final = Metric(
    "vgpu_extender_gang_holds_total",
    MetricKind.COUNTER,
    "Times that room was kept free for a gang, by how it ended: planned, expired (other pods did not leave in time), "
    "dropped (a pod went, or this replica no longer leads), impossible (the gang does not fit the empty cluster)",
    ("outcome",),
)
SYNCED: Final = Metric("vgpu_extender_watch_synced", MetricKind.GAUGE, "1 after the first list of a watch", ("watch",))
AGE: Final = Metric(
    "vgpu_extender_watch_age_seconds",
    MetricKind.GAUGE,
    "Time since a watch last heard of the API server, which sends a bookmark about each minute",
    ("watch",),
)
UNREADABLE: Final = Metric(
    "vgpu_extender_unreadable_objects_total", MetricKind.COUNTER, "Objects that a watch has skipped", ("watch",)
)
WAITING: Final = Metric(
    "vgpu_extender_queue_length", MetricKind.GAUGE, "Entries that are not done yet, by queue", ("queue",)
)
HISTORY_WAITING: Final = Metric(
    "vgpu_extender_history_waiting_records",
    MetricKind.GAUGE,
    "Records of the history that are not in the database yet: in memory, or on disk",
    ("where",),
)
HISTORY_LOST: Final = Metric(
    "vgpu_extender_history_lost_records_total",
    MetricKind.COUNTER,
    "Records of the history that are lost, by cause: dropped (no room), unreadable, refused (by the database)",
    ("cause",),
)
HISTORY_UP: Final = Metric(
    "vgpu_extender_history_up", MetricKind.GAUGE, "1 while the disk and the database of the history take records"
)
IDLE: Final = Metric(
    "vgpu_extender_idle_actions_total",
    MetricKind.COUNTER,
    "Reports of idle pods, by the action that was asked for and its outcome: warned, done, refused, error",
    ("action", "outcome"),
)

CATALOGUE: Final = (
    VERB_SECONDS,
    FAILURES,
    UNPLACED,
    BINDS,
    INFO,
    LEADER,
    OBJECTS,
    RESERVATIONS,
    GANGS,
    GANG_PLANS,
    HELD_CARDS,
    HOLDS,
    SYNCED,
    AGE,
    UNREADABLE,
    WAITING,
    HISTORY_WAITING,
    HISTORY_LOST,
    HISTORY_UP,
    IDLE,
)
BUCKETS: Final = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5)
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
class ExtenderSources:
    """What the extender's parts know now; the functions are called in the event loop.

    Attributes:
        leads: whether this replica binds.
        objects: number of objects by kind.
        reservations: number of pods whose Binding is in flight.
        gangs: number of gangs by state.
        gang_plans: number of plans that ended, by outcome.
        held_cards: number of cards on which room is kept free for a gang.
        gang_holds: how often room was kept free, by outcome.
        watches: by name.
        queues: lengths by name.
        history: how far the history's database is behind; returns None where no history is kept.
    """

    leads: Callable[[], bool]
    objects: Callable[[], Mapping[str, int]]
    reservations: Callable[[], int]
    gangs: Callable[[], Mapping[str, int]]
    gang_plans: Callable[[], Mapping[str, int]]
    held_cards: Callable[[], int]
    gang_holds: Callable[[], Mapping[str, int]]
    watches: Mapping[str, Reflector]
    queues: Callable[[], Mapping[str, int]]
    history: Callable[[], Lag | None]


def families(sources: ExtenderSources, now: float) -> Iterable[MetricFamily]:
    """Return the values of the gauges; `now` is the event loop's time in seconds."""
    watches = sources.watches.items()
    yield MetricFamily(INFO, [((vgpu.__version__,), 1)])
    yield MetricFamily(LEADER, [((), sources.leads())])
    yield MetricFamily(OBJECTS, _by_label(sources.objects()))
    yield MetricFamily(RESERVATIONS, [((), sources.reservations())])
    yield MetricFamily(GANGS, _by_label(sources.gangs()))
    yield MetricFamily(GANG_PLANS, _by_label(sources.gang_plans()))
    yield MetricFamily(HELD_CARDS, [((), sources.held_cards())])
    yield MetricFamily(HOLDS, _by_label(sources.gang_holds()))
    yield MetricFamily(SYNCED, [((name,), watch.synced.is_set()) for name, watch in watches])
    yield MetricFamily(AGE, [((name,), now - watch.heard_at) for name, watch in watches if watch.heard_at is not None])
    yield MetricFamily(UNREADABLE, [((name,), watch.unreadable) for name, watch in watches])
    yield MetricFamily(WAITING, _by_label(sources.queues()))
    yield from history_families(sources.history())


def history_families(lag: Lag | None) -> Iterable[MetricFamily]:
    """Return how far the history's database is behind; without values where no history is kept."""
    waiting = {"memory": lag.queued, "disk": lag.waiting} if lag else {}
    lost = {"dropped": lag.dropped, "unreadable": lag.unreadable, "refused": lag.refused} if lag else {}
    yield MetricFamily(HISTORY_WAITING, _by_label(waiting))
    yield MetricFamily(HISTORY_LOST, _by_label(lost))
    yield MetricFamily(HISTORY_UP, [((), not lag.error)] if lag else [])


def _by_label(values: Mapping[str, int]) -> list[tuple[tuple[str, ...], float]]:
    return [((name,), value) for name, value in values.items()]
