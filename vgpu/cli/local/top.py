"""`vgpu top`: samples the allocations again and again, and shows the rows on a terminal, in a pipe, or as JSON."""

import contextlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from enum import StrEnum
from itertools import count
from pathlib import Path

from rich.console import Console
from rich.live import Live

from limiter.host import Host
from vgpu.cli.local import running, top_rows, top_table
from vgpu.cli.local.top_rows import TopRow, WaitSample

Show = Callable[[list[TopRow]], None]


class Output(StrEnum):
    """How rows are written."""

    TABLE = "table"
    JSON = "json"


def run(
    directories: Sequence[Path], output: Output, samples: int | None, period_s: float, console: Console, host: Host
) -> None:
    """Show this many samples, or until Ctrl-C; on a terminal without a number each sample replaces the last.

    Elsewhere the first sample is not shown, because the rows compare two samples.
    """
    is_live = output is Output.TABLE and samples is None and console.is_terminal
    seen = watch(directories, period_s, host)
    if not is_live:
        next(seen)
    nothing = f"No program runs under limits. {_where(directories)}Start one: vgpu run --gpu-mem 4Gi -- COMMAND"
    with contextlib.suppress(KeyboardInterrupt), _shown(output, console, nothing, is_live=is_live) as show:
        for _ in count() if samples is None else range(samples):
            show(next(seen))


def _where(directories: Sequence[Path]) -> str:
    return f"Looked in: {', '.join(map(str, directories))}. " if directories else ""


def watch(directories: Sequence[Path], period_s: float, host: Host) -> Iterator[list[TopRow]]:
    """Yield the rows now, and again each period."""
    before = WaitSample()
    while True:
        found = running.read(directories)
        now_ns = host.monotonic_ns()
        yield top_rows.make_rows(found, before, now_ns)
        before = top_rows.sample(found, now_ns)
        host.sleep(period_s)


@contextlib.contextmanager
def _shown(output: Output, console: Console, nothing: str, *, is_live: bool) -> Iterator[Show]:
    if is_live:
        with Live(console=console, screen=True, auto_refresh=False) as live:
            yield lambda seen: live.update(top_table.shown(seen) if seen else nothing, refresh=True)
    elif output is Output.JSON:
        yield lambda seen: _print(console, json.dumps([asdict(row) for row in seen]))
    else:
        yield lambda seen: console.print(top_table.shown(seen) if seen else nothing)


def _print(console: Console, line: str) -> None:
    console.file.write(f"{line}\n")
    console.file.flush()
