"""Takes records into the database, many in one transaction; taking a record again changes nothing.

The journal is written first. Then the usage of each pod that the events are about is derived from the journal, and
compared with what is stored. Hours whose usage changes are rolled up again.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Final

from sqlalchemy import Connection, delete, func, select, tuple_

from extender.history.recording.events import (
    CardMeasured,
    Decision,
    End,
    Event,
    Listed,
    PodName,
    Record,
    Resize,
    Used,
    Watched,
)
from extender.history.storage import dimensions, journal, pod_usage, points, progress, statements
from extender.history.storage.pod_usage import PodUsage
from extender.history.storage.tables import HoldingRow, PodRow, ReplicaRow, UsedRow
from vgpu.domain.identifiers import NO_CONTAINER, PodUid

NOT_LISTED: Final = "NotListed"
KEY: Final = (HoldingRow.pod_uid, HoldingRow.card_id, HoldingRow.from_ms)

Row = dict[str, Any]
Held = Mapping[tuple[str, int, int], Row]  # by pod, card and beginning


def ingest(connection: Connection, records: Sequence[Record]) -> None:
    """Take records, in order; `connection` is in a writing transaction."""
    progress.lock(connection)
    for kind, group in groupby(records, key=_group):
        if kind is Listed:
            for listed in group:
                _events(connection, list(unseen_ends(connection, listed)))
        elif kind is Watched:
            _watched(connection, list(group))
        elif kind is Used:
            samples = list(group)
            _used(connection, samples)
            points.store(connection, samples)  # type: ignore[arg-type] # groupby knows no types of its groups
        elif kind is CardMeasured:
            points.store(connection, list(group))  # type: ignore[arg-type] # as above
        else:
            _events(connection, list(group))


def unseen_ends(connection: Connection, listed: Any) -> Iterable[End]:
    """Yield the ends of pods that the database has running and the cluster does not: nobody saw them end."""
    before = ReplicaRow.watched_ms <= listed.at_ms  # a later mark is of a replica whose clock was ahead
    watched = connection.scalar(select(func.max(ReplicaRow.watched_ms)).where(before)) or 0
    columns = (PodRow.uid, PodRow.namespace, PodRow.name, PodRow.node, PodRow.bound_ms)
    running = select(*columns).where(PodRow.ended_ms.is_(None), PodRow.bound_ms < listed.before_ms)
    for pod in connection.execute(running).all():
        if pod.uid not in listed.uids:
            name = PodName(pod.uid, pod.namespace, pod.name)
            after_ms = max(pod.bound_ms, watched)
            yield End(name, pod.node, NO_CONTAINER, after_ms, listed.at_ms, reason=NOT_LISTED)


def _group(record: Record) -> type | None:
    return type(record) if isinstance(record, Listed | Watched | Used | CardMeasured) else None


def _watched(connection: Connection, marks: Sequence[Any]) -> None:
    """Store the last mark of each replica, also one that is before the mark stored: its clock was ahead then."""
    last = {mark.replica: mark.at_ms for mark in marks}
    rows = [{"name": replica, "watched_ms": at_ms} for replica, at_ms in last.items()]
    statements.replace(connection, ReplicaRow.__table__, rows, "name")
    progress.begin(connection, min(mark.at_ms for mark in marks))


def _used(connection: Connection, samples: Sequence[Any]) -> None:
    rows = [_used_row(sample) for sample in samples]
    statements.replace(connection, UsedRow.__table__, rows, "key", keep="until_ms")
    progress.roll_up_again(connection, min(sample.from_ms for sample in samples))


def _used_row(used: Used) -> Row:
    key = hashlib.blake2b("\x1f".join(used.key()).encode(), digest_size=journal.KEY_BYTES).digest()
    return {
        "key": key,
        "from_ms": used.from_ms,
        "until_ms": used.until_ms,
        "pod_uid": used.pod_uid,
        "node": used.node,
        "container": used.container,
        "gpu": used.gpu,
        "gpu_ms": used.gpu_ms,
        "peak_mib": used.peak_mib,
        "levels": ",".join(map(str, used.levels)),
    }


def _events(connection: Connection, found: Sequence[Any]) -> None:
    journal.write(connection, found)
    uids = {event.pod.uid for event in found if _changes_usage(event)}
    derived = (pod_usage.derive(events) for events in journal.usage_events(connection, uids).values())
    pods = [usage for usage in derived if usage is not None]
    if pods:
        _store(connection, pods)


def _changes_usage(event: Event) -> bool:
    return isinstance(event, Decision | Resize) or (isinstance(event, End) and not event.container)


def _store(connection: Connection, pods: Sequence[PodUsage]) -> None:
    workloads = dimensions.workload_ids(connection, [pod.decision for pod in pods])
    wanted = [(pod.decision.node, taken.card) for pod in pods for taken in pod.taken]
    cards = dimensions.card_ids(connection, wanted)
    pod_rows = [_pod_row(pod, workloads) for pod in pods]
    statements.replace(connection, PodRow.__table__, pod_rows, "uid")
    new = {_key(row): row for pod in pods for row in _holding_rows(pod, workloads, cards)}
    _replace_holdings(connection, [pod.decision.pod.uid for pod in pods], new)


def _replace_holdings(connection: Connection, uids: Sequence[PodUid], new: Held) -> None:
    stored = connection.execute(select(*HoldingRow.__table__.columns).where(HoldingRow.pod_uid.in_(uids)))
    old = {_key(row): row for row in (dict(mapping) for mapping in stored.mappings())}
    differing = [key for key in old.keys() | new.keys() if old.get(key) != new.get(key)]
    stale = old.keys() - new.keys()
    if stale:
        connection.execute(delete(HoldingRow).where(tuple_(*KEY).in_(stale)))
    rows = [new[key] for key in differing if key in new]
    statements.replace(connection, HoldingRow.__table__, rows, "pod_uid", "card_id", "from_ms")
    if differing:
        progress.roll_up_again(connection, min(_changed_ms(old.get(key), new.get(key)) for key in differing))


def _changed_ms(old: Row | None, new: Row | None) -> int:
    """Return from when on usage differs; rows that differ in their end only are equal before it."""
    either = old or new or {}
    if old is None or new is None or {**old, "until_ms": 0} != {**new, "until_ms": 0}:
        return int(either["from_ms"])
    return int(min(old["until_ms"], new["until_ms"]))


def _key(row: Row) -> tuple[str, int, int]:
    return row["pod_uid"], row["card_id"], row["from_ms"]


def _pod_row(pod: PodUsage, workloads: Mapping[bytes, int]) -> Row:
    decision = pod.decision
    return {
        "uid": decision.pod.uid,
        "namespace": decision.pod.namespace,
        "name": decision.pod.name,
        "node": decision.node,
        "workload_id": workloads[dimensions.workload_digest(decision)],
        "bound_ms": decision.at_ms,
        "ended_after_ms": pod.end.after_ms if pod.end else None,
        "ended_ms": pod.end.at_ms if pod.end else None,
    }


def _holding_rows(
    pod: PodUsage, workloads: Mapping[bytes, int], cards: Mapping[dimensions.CardKey, int]
) -> Iterator[Row]:
    for taken in pod.taken:
        yield {
            "pod_uid": pod.decision.pod.uid,
            "card_id": cards[dimensions.card_key(pod.decision.node, taken.card)],
            "from_ms": taken.from_ms,
            "until_ms": taken.until_ms,
            "workload_id": workloads[dimensions.workload_digest(pod.decision)],
            "share": pod_usage.share(taken.card),
            "cores": pod_usage.cores(taken.card),
            "memory_mib": taken.card.memory_mib,
            "bound": taken.bound,
            "waited_ms": taken.waited_ms,
        }
