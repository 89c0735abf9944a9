"""Adds usage up: for hours and days that are over, into their tables; for any other period, for a report.

A holding counts in a window for the milliseconds of it that the holding covers. Measured time is spread evenly over the
period that it was measured in. A pod counts as bound, and its waiting time counts, in the window in which it was bound.
"""

from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import (
    CTE,
    BigInteger,
    Connection,
    Double,
    Engine,
    Integer,
    Select,
    Subquery,
    case,
    cast,
    delete,
    func,
    insert,
    literal,
    null,
    select,
    update,
)

from extender.history.storage import database, progress
from extender.history.storage.progress import HOUR_MS
from extender.history.storage.tables import CardRow, HoldingRow, PodRow, Progress, UsageDay, UsageHour, UsedRow

GRACE_MS: Final = 60_000  # events of an hour that is over may still be on their way
HOURS_PER_DAY: Final = 24
WHOLE_MS: Final = 1 << 50  # a unit that contains every period: one window, with the number 0
MEASURES: Final = ("share_ms", "cores_ms", "mib_ms", "used_ms", "bound", "waited_ms")


@dataclass(frozen=True, slots=True)
class RollupWindows:
    """A period in Unix milliseconds, cut where a unit ends: window `n` is what the period has of the `n`th unit."""

    from_ms: int
    until_ms: int
    unit_ms: int = WHOLE_MS


def roll_up(engine: Engine, now_ms: int) -> int:
    """Roll up the oldest hours that are over and not rolled up yet, up to a day of them; return how many.

    An hour is over when something later is stored. The clock alone does not say so: it may be wrong by months, and what
    is stored later in a rolled hour would have to be found again.
    """
    with database.writing(engine) as connection:
        begin = _first_hour(connection)
        end = (progress.proved_ms(connection, now_ms) - GRACE_MS) // HOUR_MS
        if begin is None or begin >= end:
            return 0
        hours = range(begin, min(end, begin + HOURS_PER_DAY))
        _roll_hours(connection, hours)
        for day in range(hours.start // HOURS_PER_DAY, hours.stop // HOURS_PER_DAY):
            _roll_day(connection, day)
        connection.execute(update(Progress).values(rolled_until_hour=hours.stop))
        return len(hours)


def _roll_hours(connection: Connection, hours: range) -> None:
    connection.execute(delete(UsageHour).where(UsageHour.hour >= hours.start, UsageHour.hour < hours.stop))
    windows = RollupWindows(hours.start * HOUR_MS, hours.stop * HOUR_MS, HOUR_MS)
    connection.execute(insert(UsageHour).from_select(["hour", "workload_id", "card_id", *MEASURES], usage_in(windows)))


def _roll_day(connection: Connection, day: int) -> None:
    """Add the hours of a day up, and all cards of a model."""
    first = select(CardRow.model, func.min(CardRow.id).label("card_id")).group_by(CardRow.model).subquery("first")
    groups = (UsageHour.workload_id, first.c.card_id)
    sums = (func.sum(getattr(UsageHour, name)) for name in MEASURES)
    added = select(literal(day, Integer), *groups, *sums).join_from(UsageHour, CardRow, CardRow.id == UsageHour.card_id)
    added = added.join(first, first.c.model == CardRow.model).group_by(*groups)
    added = added.where(UsageHour.hour >= day * HOURS_PER_DAY, UsageHour.hour < (day + 1) * HOURS_PER_DAY)
    connection.execute(delete(UsageDay).where(UsageDay.day == day))
    connection.execute(insert(UsageDay).from_select(["day", "workload_id", "card_id", *MEASURES], added))


def _first_hour(connection: Connection) -> int | None:
    """Return the first hour that is not rolled up; None where nothing is stored."""
    row = progress.lock(connection)
    if row.rolled_until_hour is not None:
        return int(row.rolled_until_hour)
    first = connection.scalar(select(func.min(HoldingRow.from_ms)))
    return None if first is None else max(first // HOUR_MS, row.purged_until_hour)


def usage_in(windows: RollupWindows) -> Select[Any]:
    """Return a query for the usage in each window: its number, the workload, the card, and the measures.

    The text of the query is the same for all windows: SQLAlchemy keeps hundreds of texts, each of up to 1 MB.
    """
    table = _windows(windows)
    both = _held_in(table, windows).union_all(_used_in(table, windows)).subquery("both")
    sums = [func.sum(both.c[name]).label(name) for name in MEASURES]
    groups = (both.c.number, both.c.workload_id, both.c.card_id)
    return select(*groups, *sums).group_by(*groups)


def _windows(windows: RollupWindows) -> CTE:
    first, last = (at // windows.unit_ms for at in (windows.from_ms, windows.until_ms - 1))
    numbers = select(literal(first, BigInteger).label("number")).cte(recursive=True)
    numbers = numbers.union_all(select(numbers.c.number + 1).where(numbers.c.number < last))
    unit, begin, end = (literal(ms, BigInteger) for ms in (windows.unit_ms, windows.from_ms, windows.until_ms))
    unit_begin, unit_end = numbers.c.number * unit, (numbers.c.number + 1) * unit
    return select(
        cast(numbers.c.number, Integer).label("number"),
        case((unit_begin > begin, unit_begin), else_=begin).label("from_ms"),
        case((unit_end < end, unit_end), else_=end).label("until_ms"),
    ).cte()


def _held_in(window: CTE, windows: RollupWindows) -> Select[Any]:
    lasted = _overlap(HoldingRow.from_ms, HoldingRow.until_ms, window)
    is_begun = (HoldingRow.from_ms >= window.c.from_ms) & (HoldingRow.from_ms < window.c.until_ms)
    return (
        select(
            window.c.number,
            HoldingRow.workload_id,
            HoldingRow.card_id,
            (lasted * HoldingRow.share).label("share_ms"),
            (lasted * HoldingRow.cores / 100.0).label("cores_ms"),
            (lasted * HoldingRow.memory_mib).label("mib_ms"),
            cast(null(), Double).label("used_ms"),
            case((is_begun, HoldingRow.bound), else_=0).label("bound"),
            case((is_begun, cast(HoldingRow.waited_ms, Double)), else_=0.0).label("waited_ms"),
        )
        .join_from(HoldingRow, window, _meets(HoldingRow, window))
        .where(*_near(HoldingRow, windows))
    )


def _used_in(window: CTE, windows: RollupWindows) -> Select[Any]:
    lasted = func.nullif(cast(UsedRow.until_ms - UsedRow.from_ms, Double), 0.0)
    part = _overlap(UsedRow.from_ms, UsedRow.until_ms, window) / lasted
    card = (
        select(func.min(CardRow.id)).where(CardRow.gpu == UsedRow.gpu, CardRow.node == UsedRow.node).scalar_subquery()
    )
    return (
        select(
            window.c.number,
            PodRow.workload_id,
            card.label("card_id"),
            *(literal(0.0).label(name) for name in MEASURES[:3]),
            (part * UsedRow.gpu_ms).label("used_ms"),
            literal(0).label("bound"),
            literal(0.0).label("waited_ms"),
        )
        .join_from(UsedRow, PodRow, (PodRow.uid == UsedRow.pod_uid) & (PodRow.node == UsedRow.node))
        .join(window, _meets(UsedRow, window))
        .where(*_near(UsedRow, windows), card.is_not(None))
    )


def _overlap(begin: Any, end: Any, window: CTE) -> Any:
    """Return how many milliseconds of a period are in the window, as a float."""
    later = case((begin > window.c.from_ms, begin), else_=window.c.from_ms)
    earlier = case((end < window.c.until_ms, end), else_=window.c.until_ms)
    return cast(earlier - later, Double)


def _meets(period: type[HoldingRow | UsedRow], window: CTE | Subquery) -> Any:
    return (period.from_ms < window.c.until_ms) & (period.until_ms > window.c.from_ms)


def _near(period: type[HoldingRow | UsedRow], windows: RollupWindows) -> tuple[Any, Any]:
    """Return conditions that an index answers: the period meets the time from the first to the last window."""
    return period.until_ms > windows.from_ms, period.from_ms < windows.until_ms
