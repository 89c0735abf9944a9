"""`vgpu log`: samples of the allocations of this machine, as CSV with the field names of nvidia-smi.

https://developer.nvidia.com/nvidia-smi, `--help-query-gpu`. What is not known is `[N/A]`, as nvidia-smi writes it.
"""

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import count as counting
from pathlib import Path
from typing import Final

from limiter.host import Host
from vgpu.cli.local import top
from vgpu.cli.local.top_rows import TopRow

UNKNOWN: Final = "[N/A]"
DEFAULT_QUERY: Final = "timestamp,process_name,gpu_uuid,memory.total,memory.used,utilization.gpu"
FORMATS: Final = ("csv", "noheader", "nounits")
MIB: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class LogField:
    """A field: its unit, its meaning, and the value of a row; None is not known."""

    unit: str
    meaning: str
    value: Callable[[TopRow], int | str | None]


@dataclass(frozen=True, slots=True)
class LogOptions:
    """What to log: field names, and whether with heads and units."""

    names: tuple[str, ...]
    has_heads: bool
    has_units: bool


def _free(row: TopRow) -> int | None:
    if row.limit_bytes is None or row.used_bytes is None:
        return None
    return max(0, row.limit_bytes - row.used_bytes) // MIB


def _mib(amount: int | None) -> int | None:
    return None if amount is None else amount // MIB


def _percent(share: float | None) -> int | None:
    return None if share is None else round(share * 100)


def _memory_percent(row: TopRow) -> int | None:
    return row.used_bytes * 100 // row.limit_bytes if row.limit_bytes and row.used_bytes is not None else None


FIELDS: Final[Mapping[str, LogField]] = {
    "timestamp": LogField("", "time of the sample, local", lambda _: ""),
    "uuid": LogField("", "UUID of the card", lambda row: None if row.gpu == "*" else row.gpu),
    "gpu_uuid": LogField("", "as uuid", lambda row: None if row.gpu == "*" else row.gpu),
    "process_name": LogField("", "the command, or NAMESPACE/POD/CONTAINER", lambda row: row.name),
    "name": LogField("", "as process_name", lambda row: row.name),
    "memory.total": LogField("MiB", "the limit", lambda row: _mib(row.limit_bytes)),
    "memory.used": LogField("MiB", "what the program holds", lambda row: _mib(row.used_bytes)),
    "used_memory": LogField("MiB", "as memory.used", lambda row: _mib(row.used_bytes)),
    "used_gpu_memory": LogField("MiB", "as memory.used", lambda row: _mib(row.used_bytes)),
    "memory.free": LogField("MiB", "what is left of the limit", _free),
    "utilization.gpu": LogField("%", "share of the card's time in the last second", lambda row: _percent(row.share_1s)),
    "utilization.memory": LogField("%", "part of the limit that is used", _memory_percent),
    "vgpu.id": LogField("", "ID of the allocation, for `vgpu set`", lambda row: row.id),
    "vgpu.cores": LogField("%", "the share of the card's time that is asked for", lambda row: row.cores),
    "vgpu.policy": LogField("", "compute policy", lambda row: row.policy),
    "vgpu.throttled": LogField("%", "part of the time for which launches waited", lambda row: _percent(row.throttled)),
    "vgpu.refusals": LogField("", "allocations that were refused", lambda row: row.refusals),
}


def parse(query: str, form: str) -> LogOptions:
    """Read the options. Raises ValueError that names the field and the option."""
    names = tuple(name.strip() for name in query.split(","))
    for name in names:
        if name not in FIELDS:
            raise ValueError(f'--query: Field "{name[:60]}" is not a valid field to query; see --query help')
    kinds = [kind.strip() for kind in form.split(",")]
    if kinds[0] != "csv" or not set(kinds) <= set(FORMATS):
        raise ValueError("--format: must be csv, with noheader and nounits after a comma where wanted")
    return LogOptions(names, "noheader" not in kinds, "nounits" not in kinds)


def run(
    directories: Sequence[Path],
    asked: LogOptions,
    period_s: float | None,
    count: int | None,
    host: Host,
    now: Callable[[], datetime],
    write: Callable[[str], object],
) -> None:
    """Write the heads, then samples: one, `count`, or until Ctrl-C where a period is given."""
    samples = count if count is not None or period_s is not None else 1
    if asked.has_heads:
        write(heads(asked))
    seen = top.watch(directories, period_s or 1.0, host)
    with contextlib.suppress(KeyboardInterrupt):
        for _ in counting() if samples is None else range(samples):
            for row in next(seen):
                write(line(row, asked, now()))


def heads(asked: LogOptions) -> str:
    """Return the first line: names, with units in brackets."""
    return ", ".join(_head(name, FIELDS[name].unit if asked.has_units else "") for name in asked.names)


def line(row: TopRow, asked: LogOptions, at: datetime) -> str:
    """Return a row's line."""
    return ", ".join(_cell(name, row, asked, at) for name in asked.names)


def field_help() -> str:
    """Return the list of fields."""
    width = max(map(len, FIELDS))
    return "\n".join(f"{name:<{width}}  {_head(field.meaning, field.unit)}" for name, field in FIELDS.items())


def _head(name: str, unit: str) -> str:
    return f"{name} [{unit}]" if unit else name


def _cell(name: str, row: TopRow, asked: LogOptions, at: datetime) -> str:
    if name == "timestamp":
        return at.strftime("%Y/%m/%d %H:%M:%S.") + f"{at.microsecond // 1000:03}"
    found = FIELDS[name]
    value = found.value(row)
    if value is None:
        return UNKNOWN
    text = str(value).replace(",", ";")
    return f"{text} {found.unit}" if found.unit and asked.has_units else text
