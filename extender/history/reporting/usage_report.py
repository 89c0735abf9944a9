"""Usage of a period, grouped: complete days and hours from their tables, the time before and after from holdings."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import date, timedelta
from typing import Any, Final

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    Connection,
    Integer,
    Select,
    Subquery,
    case,
    func,
    literal,
    literal_column,
    select,
    union_all,
)
from sqlalchemy import cast as sql_cast

from extender.history.reporting.prices import Prices
from extender.history.reporting.reports import Dimension, UsageFilters, UsageGroup, UsageRow
from extender.history.storage import progress, rollup
from extender.history.storage.progress import HOUR_MS
from extender.history.storage.rollup import MEASURES, RollupWindows
from extender.history.storage.tables import CardRow, UsageDay, UsageHour, WorkloadRow
from vgpu.domain import names

HOURS_PER_DAY: Final = 24
DAY_MS: Final = HOURS_PER_DAY * HOUR_MS
MS: Final = 1_000.0
USED: Final = "used_ms"
EPOCH: Final = date(1970, 1, 1)


def report(
    connection: Connection,
    by: Sequence[UsageGroup],
    since_ms: int,
    until_ms: int,
    filters: UsageFilters,
    prices: Prices,
) -> list[UsageRow]:
    """Return a row for each group, the largest `share_seconds` first; `until_ms` is not in the future."""
    by_day = any(group.dimension is Dimension.DAY for group in by)
    for_cards = filters.nodes is not None or filters.cards is not None
    for_cards |= any(group.dimension in (Dimension.CARD, Dimension.NODE) for group in by)
    parts = list(_parts(connection, since_ms, until_ms, by_day=by_day, for_cards=for_cards))
    if not parts:
        return []
    found = connection.execute(_grouped(union_all(*parts), by, filters))
    return sorted(_rows(found, by, prices), key=lambda row: (-row.share_seconds, row.group))


def _parts(
    connection: Connection, since_ms: int, until_ms: int, *, by_day: bool, for_cards: bool
) -> Iterator[Select[Any]]:
    """Yield queries with the columns number (the day, or 0), workload, card, and the measures.

    The days that are rolled up come from their table, unless single cards are asked for; hours before and after these
    days come from the table of hours, and the rest from the holdings.
    """
    rolled = progress.read(connection).rolled_until_hour or 0
    hours = _inner(range(since_ms, until_ms), HOUR_MS, rolled)
    days = range(0) if for_cards else _inner(hours, HOURS_PER_DAY, rolled // HOURS_PER_DAY)
    if days:
        yield _rolled(UsageDay, UsageDay.day, UsageDay.day if by_day else literal(0), days)
    for part in _outer(hours, days, HOURS_PER_DAY):
        day = UsageHour.hour // literal_column(str(HOURS_PER_DAY), Integer)  # a parameter would differ in each place
        yield _rolled(UsageHour, UsageHour.hour, day if by_day else literal(0), part)
    for part in _outer(range(since_ms, until_ms), hours, HOUR_MS):
        yield rollup.usage_in(RollupWindows(part.start, part.stop, DAY_MS if by_day else rollup.WHOLE_MS))


def _inner(period: range, unit: int, limit: int) -> range:
    """Return the complete units of a period, up to a limit; empty where there are none."""
    return range(-(-period.start // unit), min(period.stop // unit, limit))


def _outer(period: range, inner: range, unit: int) -> list[range]:
    """Return what of a period is before and after its inner units."""
    if not inner:
        return [period] if period else []
    around = (range(period.start, inner.start * unit), range(inner.stop * unit, period.stop))
    return [part for part in around if part]


def _rolled(table: type[UsageHour | UsageDay], column: Any, number: Any, period: range) -> Select[Any]:
    sums = (func.sum(getattr(table, name)).label(name) for name in MEASURES)
    rows = select(sql_cast(number, Integer).label("number"), table.workload_id, table.card_id, *sums)
    groups = (table.workload_id, table.card_id, *([number] if not isinstance(number, BindParameter) else []))
    return rows.where(column >= period.start, column < period.stop).group_by(*groups)


def _grouped(parts: Any, by: Sequence[UsageGroup], filters: UsageFilters) -> Select[Any]:
    """Join the names, filter and group; a price is for a model, so the model is always a group."""
    usage = parts.subquery("usage")
    columns = {Dimension.DAY: usage.c.number, **_COLUMNS}
    values = [_label(group.label) if group.dimension is Dimension.LABEL else columns[group.dimension] for group in by]
    groups = [value.label(f"group_{number}") for number, value in enumerate([*values, CardRow.model])]
    sums = (func.sum(_measure(usage, name)).label(name) for name in MEASURES)
    joined = select(*groups, *sums).join_from(usage, WorkloadRow, WorkloadRow.id == usage.c.workload_id)
    joined = joined.join(CardRow, CardRow.id == usage.c.card_id)
    return joined.where(*conditions(filters)).group_by(*groups)


def _measure(usage: Subquery, name: str) -> Any:
    """Return a measure. The GPU time of synthetic loads is no use; their shares cost as those of others."""
    return case((is_synthetic(), literal_column("0", Integer)), else_=usage.c[name]) if name == USED else usage.c[name]


def is_synthetic() -> ColumnElement[bool]:
    """Return whether the pods of a workload are loads for tests."""
    return _label(names.SYNTHETIC) == "true"


def conditions(filters: UsageFilters) -> Iterator[ColumnElement[bool]]:
    """Yield the conditions of filters, for a query that joins `WorkloadRow` and `CardRow`."""
    chosen = (
        (WorkloadRow.namespace, filters.namespaces),
        (WorkloadRow.owner, None if filters.owner is None else {filters.owner}),
        (CardRow.node, filters.nodes),
        (CardRow.gpu, filters.cards),
        (CardRow.model, filters.models),
    )
    for column, values in chosen:
        if values is not None:
            yield column.in_(values)
    for key, value in filters.labels.items():
        yield _label(key) == value


def _label(key: str) -> ColumnElement[str]:
    return func.coalesce(WorkloadRow.labels[key].as_string(), "")


_COLUMNS: Final[dict[Dimension, Any]] = {
    Dimension.NAMESPACE: WorkloadRow.namespace,
    Dimension.OWNER: WorkloadRow.owner,
    Dimension.CARD: CardRow.gpu,
    Dimension.MODEL: CardRow.model,
    Dimension.NODE: CardRow.node,
}


def _rows(found: Iterable[Any], by: Sequence[UsageGroup], prices: Prices) -> Iterator[UsageRow]:
    """Add the models of a group up; a group has a cost if each of its models has a price."""
    groups: dict[tuple[str, ...], list[Any]] = {}
    for row in found:
        name = tuple(_text(group, value) for group, value in zip(by, row, strict=False))
        groups.setdefault(name, []).append(row)
    for name, rows in groups.items():
        yield _row(name, rows, [prices.cost(row[len(by)], row.share_ms / MS) for row in rows])


def _row(name: tuple[str, ...], rows: Sequence[Any], costs: Sequence[float | None]) -> UsageRow:
    known = [cost for cost in costs if cost is not None]
    used = [row.used_ms for row in rows if row.used_ms is not None]
    return UsageRow(
        group=name,
        share_seconds=sum(row.share_ms for row in rows) / MS,
        gpu_seconds_asked=sum(row.cores_ms for row in rows) / MS,
        gpu_seconds_used=sum(used) / MS if used else None,
        mib_hours=sum(row.mib_ms for row in rows) / HOUR_MS,
        waiting_seconds=sum(row.waited_ms for row in rows) / MS,
        bound=int(sum(row.bound for row in rows)),
        cost=sum(known) if len(known) == len(costs) else None,
    )


def _text(group: UsageGroup, value: Any) -> str:
    return (EPOCH + timedelta(days=value)).isoformat() if group.dimension is Dimension.DAY else str(value)
