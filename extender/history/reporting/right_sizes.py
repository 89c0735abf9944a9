"""What containers used, beside what they asked for: of each workload's container, over all of its pods in a period.

Synthetic loads are left out.

The histograms of the minutes are added up here, not by the database. The number of rows that are read is bounded.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from sqlalchemy import Connection, Executable, func, select
from sqlalchemy.orm import aliased

from extender.history.recording import lines
from extender.history.recording.events import ContainerShare, Decision, EventKind
from extender.history.reporting import usage_report
from extender.history.reporting.reports import RightSizeRow, RightSizes, UsageFilters
from extender.history.storage.tables import CardRow, EventRow, PodRow, UsedRow, WorkloadRow
from vgpu.domain.asks import right_size
from vgpu.domain.asks.right_size import AskedShare
from vgpu.domain.cards import measured_use
from vgpu.domain.identifiers import ContainerName, Namespace, PodUid

MAX_ROWS: Final = 50_000  # 300 containers for a week; 0.3 s
_PODS_AT_ONCE: Final = 500  # SQLite takes 32,766 parameters

Name = tuple[Namespace, str, ContainerName]  # namespace, owner, container


@dataclass(slots=True)
class _Sum:
    """The periods of one container of a workload; `pods` has the pods' UIDs, the last one measured at the end."""

    pods: dict[PodUid, None] = field(default_factory=dict)
    levels: list[int] = field(default_factory=list)
    gpu_ms: int = 0
    measured_ms: int = 0
    peak_mib: int = 0

    def add(self, row: Any) -> None:
        """Take a row of `used`."""
        self.pods.pop(row.pod_uid, None)
        self.pods[row.pod_uid] = None
        self.levels = measured_use.added((self.levels, _levels(row.levels)))
        self.gpu_ms += row.gpu_ms
        self.measured_ms += row.until_ms - row.from_ms
        self.peak_mib = max(self.peak_mib, row.peak_mib)

    @property
    def last_pod(self) -> PodUid:
        """UID of the pod that was measured last: what it asks for is what its owner asks for now."""
        return next(reversed(self.pods))


def report(connection: Connection, since_ms: int, until_ms: int, filters: UsageFilters, pod: str = "") -> RightSizes:
    """Return a row for each container of each workload, the one with the most measured time first."""
    found = connection.execute(_used(since_ms, until_ms, filters, pod)).all()
    sums: dict[Name, _Sum] = {}
    for row in reversed(found[:MAX_ROWS]):
        sums.setdefault((row.namespace, row.owner, row.container), _Sum()).add(row)
    shares = _shares(connection, {total.last_pod for total in sums.values()})
    rows = (_row(name, total, shares.get((total.last_pod, name[2]))) for name, total in sums.items())
    ordered = sorted((row for row in rows if row is not None), key=lambda row: (-row.measured_s, row.owner))
    return RightSizes(tuple(ordered), is_complete=len(found) <= MAX_ROWS)


def _used(since_ms: int, until_ms: int, filters: UsageFilters, pod: str) -> Executable:
    """Return a query for the periods that ended in the time asked for, the latest first."""
    columns = (UsedRow.pod_uid, UsedRow.container, UsedRow.from_ms, UsedRow.until_ms, UsedRow.gpu_ms)
    chosen = select(*columns, UsedRow.peak_mib, UsedRow.levels, WorkloadRow.namespace, WorkloadRow.owner)
    joined = chosen.join_from(UsedRow, PodRow, (PodRow.uid == UsedRow.pod_uid) & (PodRow.node == UsedRow.node))
    joined = joined.join(WorkloadRow, WorkloadRow.id == PodRow.workload_id)
    first = aliased(CardRow)
    card = select(func.min(first.id)).where(first.gpu == UsedRow.gpu, first.node == UsedRow.node).scalar_subquery()
    joined = joined.join(CardRow, CardRow.id == card)
    named = (PodRow.name == pod,) if pod else ()
    period = (UsedRow.until_ms > since_ms, UsedRow.until_ms <= until_ms)
    conditions = (*period, *named, *usage_report.conditions(filters), ~usage_report.is_synthetic())
    return joined.where(*conditions).order_by(UsedRow.until_ms.desc()).limit(MAX_ROWS + 1)


def _shares(connection: Connection, uids: Iterable[PodUid]) -> dict[tuple[PodUid, ContainerName], ContainerShare]:
    """Return what each container of these pods was given on its first card."""
    found: dict[tuple[PodUid, ContainerName], ContainerShare] = {}
    for decision in _decisions(connection, sorted(uids)):
        for share in decision.containers:
            found.setdefault((decision.pod.uid, share.container), share)
    return found


def _decisions(connection: Connection, uids: Sequence[PodUid]) -> Iterator[Decision]:
    for first in range(0, len(uids), _PODS_AT_ONCE):
        some = uids[first : first + _PODS_AT_ONCE]
        stored = select(EventRow.payload).where(EventRow.pod_uid.in_(some), EventRow.kind == EventKind.DECISION)
        for payload in connection.scalars(stored):
            yield lines.from_payload(EventKind.DECISION, payload.encode())


def _row(name: Name, total: _Sum, share: ContainerShare | None) -> RightSizeRow | None:
    if share is None:
        return None  # retention has deleted the pod's decision
    namespace, owner, container = name
    asked = AskedShare(share.memory_mib, share.cores, share.whole)
    found = right_size.right_size(asked, total.levels, total.gpu_ms, total.measured_ms, total.peak_mib)
    return RightSizeRow(namespace, owner, container, len(total.pods), total.measured_ms / 1000, asked, found)


def _levels(text: str) -> list[int]:
    return [int(number) for number in text.split(",")] if text else []
