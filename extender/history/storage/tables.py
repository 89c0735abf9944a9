"""The tables. Times are Unix milliseconds, hours are numbered from 1970; both are numbers, so that SQL can add them up.

`events` is the journal. `holdings` is derived from it, for each pod at once: what it took of each card, from when until
when. `usage_hours` is derived from the holdings, for complete hours, and kept longer; `usage_days` from complete days,
for reports that do not ask for single cards.
"""

from collections.abc import Mapping
from typing import Any, Final

from sqlalchemy import JSON, BigInteger, Double, Index, Integer, LargeBinary, MetaData, String, UniqueConstraint
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from vgpu.domain.identifiers import CardUuid, ContainerName, Namespace, NodeName, PodUid

OPEN: Final = 1 << 62  # `until_ms` of what still runs
BIG: Final = BigInteger().with_variant(Integer, "sqlite")  # only an INTEGER key is SQLite's row number


class Base(DeclarativeBase):
    """The declarative base."""

    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "pk": "pk_%(table_name)s",
        }
    )


class EventRow(Base):
    """An event. `key` is a digest of its kind and key; of equal ones the row with the highest `rank` is kept."""

    __tablename__ = "events"
    __table_args__ = (
        Index(None, "at_ms", "id"),
        Index(None, "namespace", "at_ms", "id"),
        Index(None, "pod", "at_ms", "id"),
        Index(None, "pod_uid"),
    )

    id: Mapped[int] = mapped_column(BIG, primary_key=True, autoincrement=True)
    key: Mapped[bytes] = mapped_column(LargeBinary(16), unique=True)
    rank: Mapped[int] = mapped_column(BigInteger)
    kind: Mapped[str] = mapped_column(String(16))
    at_ms: Mapped[int] = mapped_column(BigInteger)
    namespace: Mapped[Namespace] = mapped_column(String(63))
    pod_uid: Mapped[PodUid] = mapped_column(String(64))
    pod: Mapped[str] = mapped_column(String(253))
    node: Mapped[NodeName] = mapped_column(String(253))
    gpu: Mapped[CardUuid] = mapped_column(String(64))
    payload: Mapped[str]


class WorkloadRow(Base):
    """What pods are grouped by: namespace, owner and labels. `digest` is of these three."""

    __tablename__ = "workloads"

    id: Mapped[int] = mapped_column(primary_key=True)
    digest: Mapped[bytes] = mapped_column(LargeBinary(16), unique=True)
    namespace: Mapped[Namespace] = mapped_column(String(63))
    owner: Mapped[str] = mapped_column(String(320))
    labels: Mapped[Mapping[str, Any]] = mapped_column(JSON)


class CardRow(Base):
    """A card on a node; a card that is moved to another node gets another row."""

    __tablename__ = "cards"
    __table_args__ = (UniqueConstraint("gpu", "node", "model"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    gpu: Mapped[CardUuid] = mapped_column(String(64))
    node: Mapped[NodeName] = mapped_column(String(253))
    model: Mapped[str] = mapped_column(String(96))
    index: Mapped[int]
    card_mib: Mapped[int]


class PodRow(Base):
    """A pod that was bound. `ended_ms` is None while it runs; it ended between `ended_after_ms` and `ended_ms`."""

    __tablename__ = "pods"
    __table_args__ = (Index(None, "namespace", "name"), Index(None, "ended_ms"))

    uid: Mapped[PodUid] = mapped_column(String(64), primary_key=True)
    namespace: Mapped[Namespace] = mapped_column(String(63))
    name: Mapped[str] = mapped_column(String(253))
    node: Mapped[NodeName] = mapped_column(String(253))
    workload_id: Mapped[int]
    bound_ms: Mapped[int] = mapped_column(BigInteger)
    ended_after_ms: Mapped[int | None] = mapped_column(BigInteger)
    ended_ms: Mapped[int | None] = mapped_column(BigInteger)


class HoldingRow(Base):
    """What a pod took of a card from `from_ms` until `until_ms`; another row begins where the share was resized.

    `share` is the larger of the parts of memory and of time, 0 to 1. `bound` is 1 and `waited_ms` the waiting time in
    the first row of a pod, so that sums count each pod once.
    """

    __tablename__ = "holdings"
    __table_args__ = (Index(None, "until_ms", "from_ms"),)

    pod_uid: Mapped[PodUid] = mapped_column(String(64), primary_key=True)
    card_id: Mapped[int] = mapped_column(primary_key=True)
    from_ms: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    until_ms: Mapped[int] = mapped_column(BigInteger)
    workload_id: Mapped[int]
    share: Mapped[float] = mapped_column(Double)
    cores: Mapped[int]
    memory_mib: Mapped[int]
    bound: Mapped[int]
    waited_ms: Mapped[int] = mapped_column(BigInteger)


class UsedRow(Base):
    """Measured GPU time of a container on a card, a row for each period that a node reported: an hour at most.

    `levels` is the histogram of the period's minutes, as numbers with commas (`vgpu.domain.cards.measured_use`).
    """

    __tablename__ = "used"
    __table_args__ = (Index(None, "until_ms", "from_ms"), Index(None, "pod_uid"))

    key: Mapped[bytes] = mapped_column(LargeBinary(16), primary_key=True)
    from_ms: Mapped[int] = mapped_column(BigInteger)
    until_ms: Mapped[int] = mapped_column(BigInteger)
    pod_uid: Mapped[PodUid] = mapped_column(String(64))
    node: Mapped[NodeName] = mapped_column(String(253))
    gpu: Mapped[CardUuid] = mapped_column(String(64))
    gpu_ms: Mapped[int] = mapped_column(BigInteger)
    container: Mapped[ContainerName] = mapped_column(String(80))
    peak_mib: Mapped[int]
    levels: Mapped[str] = mapped_column(String(255))


class SeriesRow(Base):
    """What `points` are of: a container on a card, or the card itself, where `pod_uid` and `container` are empty."""

    __tablename__ = "series"
    __table_args__ = (Index(None, "gpu"), Index(None, "pod_uid"))

    id: Mapped[int] = mapped_column(primary_key=True)
    key: Mapped[bytes] = mapped_column(LargeBinary(16), unique=True)
    node: Mapped[NodeName] = mapped_column(String(253))
    gpu: Mapped[CardUuid] = mapped_column(String(64))
    pod_uid: Mapped[PodUid] = mapped_column(String(64))
    container: Mapped[ContainerName] = mapped_column(String(80))


class PointRow(Base):
    """The last report about a series in five minutes: what was measured from `from_ms`, an hour ago at most.

    `slot` numbers the five minutes from 1970 in which `until_ms` is. What was used between two points of one period is
    the difference between them. Memory, temperature and power are those at `until_ms`; what is not known is null.
    """

    __tablename__ = "points"
    __table_args__ = (Index(None, "slot"), {"sqlite_with_rowid": False})

    series_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    slot: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    from_ms: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    until_ms: Mapped[int] = mapped_column(BigInteger)
    used_ms: Mapped[int]
    used_mib: Mapped[int | None]
    turn_ms: Mapped[int | None] = mapped_column(BigInteger)
    share_ms: Mapped[int | None] = mapped_column(BigInteger)
    drain_ms: Mapped[int | None] = mapped_column(BigInteger)
    queued_ms: Mapped[int | None] = mapped_column(BigInteger)
    celsius: Mapped[int | None]
    watts: Mapped[int | None]


class UsageSums:
    """The columns of a roll-up's row: milliseconds, each times a share, percent or MiB."""

    workload_id: Mapped[int] = mapped_column(primary_key=True)
    card_id: Mapped[int] = mapped_column(primary_key=True)
    share_ms: Mapped[float] = mapped_column(Double)
    cores_ms: Mapped[float] = mapped_column(Double)
    mib_ms: Mapped[float] = mapped_column(Double)
    used_ms: Mapped[float | None] = mapped_column(Double)
    bound: Mapped[int]
    waited_ms: Mapped[float] = mapped_column(Double)


class UsageHour(UsageSums, Base):
    """Usage of one workload on one card in one hour."""

    __tablename__ = "usage_hours"

    hour: Mapped[int] = mapped_column(primary_key=True)


class UsageDay(UsageSums, Base):
    """Usage of one workload on all cards of one model in one day, in UTC; `card_id` is the first card of the model."""

    __tablename__ = "usage_days"

    day: Mapped[int] = mapped_column(primary_key=True)


class Progress(Base):
    """One row: which hours are rolled up, what retention has deleted, and when the history began.

    Writers lock it: one writes at a time. `began_ms` is the first mark of a replica; 0: there was none yet.
    """

    __tablename__ = "progress"

    id: Mapped[int] = mapped_column(primary_key=True)
    rolled_until_hour: Mapped[int | None]
    purged_until_hour: Mapped[int]
    began_ms: Mapped[int] = mapped_column(BigInteger, server_default="0")


class ReplicaRow(Base):
    """When a replica's watches showed the cluster as it was, for the last time."""

    __tablename__ = "replicas"

    name: Mapped[str] = mapped_column(String(320), primary_key=True)
    watched_ms: Mapped[int] = mapped_column(BigInteger)
