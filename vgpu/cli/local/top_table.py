"""Rows for people: a table that eighty columns hold, whatever the figures are."""

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from vgpu.cli.local import top_rows
from vgpu.cli.local.top_rows import GroupRow, JobRow, TopRow
from vgpu.domain.identifiers import CardUuid

_HEADS: Final = ("CARD", "MEMORY", "ASKED", "1s%", "10s%", "thr%", "WAITS", "MAX", "REF")
_JOB_HEADS: Final = ("CARDS", "ASKED", "1s%", "thr%")
_GROUP_HEADS: Final = ("CARD", "MEMBERS", "MEMORY", "ASKED", "1s%", "10s%")
_UNKNOWN: Final = "?"  # limits or figures that cannot be read
_POLICIES: Final = {"best-effort": "best"}
_DIGITS: Final = 999.5  # from here on a figure would be written with four
_PLAIN: Final = 10_000  # counts below are written out


def table(rows: Iterable[TopRow]) -> Table:
    """Make the table; only the name gives way where there is little room."""
    return _table(("ID",), "COMMAND OR POD", _HEADS, map(_cells, rows))


def groups_table(rows: Iterable[GroupRow]) -> Table:
    """Make the table of groups in space."""
    return _table((), "GROUP IN SPACE", _GROUP_HEADS, map(_group_cells, rows))


def jobs_table(rows: Iterable[JobRow]) -> Table:
    """Make the table of jobs; the share of the last second is that of the least and of the most used card."""
    return _table(("JOB",), "CONTAINERS THAT HAVE THEIR TURNS TOGETHER", _JOB_HEADS, map(_job_cells, rows))


def shown(rows: Sequence[TopRow]) -> RenderableType:
    """Return what people see: the allocations, and below them the jobs and the groups in space, where there are any."""
    jobs, groups = top_rows.make_jobs(rows), top_rows.make_groups(rows)
    more: list[RenderableType] = []
    if jobs:
        more += ["", jobs_table(jobs)]
    if groups:
        more += ["", groups_table(groups)]
    return Group(table(rows), *more) if more else table(rows)


def _table(before: Iterable[str], name: str, figures: Iterable[str], rows: Iterable[Iterable[str]]) -> Table:
    made = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, expand=True, header_style="bold")
    for head in before:
        made.add_column(head, no_wrap=True)
    made.add_column(name, no_wrap=True, ratio=1, min_width=8, overflow="ellipsis")
    for head in figures:
        made.add_column(head, no_wrap=True, justify="right")
    for cells in rows:
        made.add_row(*map(Text, cells))
    return made


def size(amount: int) -> str:
    """Write bytes in at most five characters: `0`, `512M`, `1.5G`."""
    return _scaled(amount / 1024, 1024, "KMGTPE") if amount else "0"


def memory(row: TopRow) -> str:
    """Write what is used and the limit: `2.1G/8G`; `<8G/8G` where rounding would make them look equal."""
    if row.limit_bytes is None:
        return f"{_known(size, row.used_bytes)}/{'-' if row.policy else _UNKNOWN}"
    used, limit = _known(size, row.used_bytes), size(row.limit_bytes)
    if used == limit and row.used_bytes is not None and row.used_bytes != row.limit_bytes:
        used = ("<" if row.used_bytes < row.limit_bytes else ">") + used
    return f"{used}/{limit}"


def count(amount: int) -> str:
    """Write a count in at most five characters: `9999`, `12k`, `4.3G`."""
    return str(amount) if amount < _PLAIN else _scaled(amount / 1000, 1000, "kMGTPE")


def duration(us: int) -> str:
    """Write a wait in at most five characters: `0`, `40us`, `1.5ms`, `12s`, `71m`."""
    for scale, unit in ((1, "us"), (1000, "ms"), (10**6, "s")):
        if us < _DIGITS * scale:
            return f"{_digits(us / scale, 9.95)}{unit}" if us else "0"
    return f"{us / 60e6:.0f}m"


def percent(share: float | None) -> str:
    """Write a share of 1 in at most four characters; `-` where it is not known."""
    return "-" if share is None else _digits(min(9.99, share) * 100)


def _cells(row: TopRow) -> list[str]:
    return [
        row.id[:8],
        row.name,
        _card(row.gpu),
        memory(row),
        _asked(row.policy, row.cores),
        *map(percent, (row.share_1s, row.share_10s, row.throttled)),
        _known(count, row.delayed_launches),
        _known(duration, row.longest_wait_us),
        _known(count, row.refusals),
    ]


def _job_cells(row: JobRow) -> list[str]:
    least, most = percent(row.least_1s), percent(row.most_1s)
    return [
        row.job,
        ", ".join(row.members),
        " ".join(map(_card, row.gpus)) or "*",
        _asked(row.policy, row.cores),
        least if least == most else f"{least}-{most}",
        percent(row.throttled),
    ]


def _asked(policy: str | None, cores: int) -> str:
    return f"{_POLICIES.get(policy, policy)} {cores}" if policy else _UNKNOWN


def _group_cells(row: GroupRow) -> list[str]:
    limit = "-" if row.limit_bytes is None else size(row.limit_bytes)
    return [
        row.group,
        _card(row.gpu),
        str(row.members),
        f"{size(row.used_bytes)}/{limit}",
        str(row.cores),
        *map(percent, (row.share_1s, row.share_10s)),
    ]


def _card(gpu: CardUuid) -> str:
    return gpu.removeprefix("GPU-")[:6]


def _known(write: Callable[[int], str], amount: int | None) -> str:
    return _UNKNOWN if amount is None else write(amount)


def _scaled(value: float, step: int, units: str) -> str:
    for unit in units[:-1]:
        if value < _DIGITS:
            return f"{_digits(value)}{unit}"
        value /= step
    return f"{_digits(value)}{units[-1]}"


def _digits(value: float, whole_from: float = 99.95) -> str:
    """Write a figure with one decimal, where it is not 0; from `whole_from` on without."""
    return f"{value:.0f}" if value >= whole_from else f"{value:.1f}".removesuffix(".0")
