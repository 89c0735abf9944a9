"""`vgpu top`: looks again and again, and shows what it saw on a terminal, in a pipe, or as JSON."""

import contextlib
import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from enum import StrEnum
from itertools import count
from pathlib import Path

from rich.console import Console
from rich.live import Live

from vgpu.cli.local import allocations, top_rows, top_table
from vgpu.cli.local.top_rows import Look, Row

Show = Callable[[list[Row]], None]


class Output(StrEnum):
    """How rows are written."""

    TABLE = "table"
    JSON = "json"


def run(places: Sequence[Path], output: Output, looks: int | None, period_s: float, console: Console) -> None:
    """Show so many looks, or until Ctrl-C; on a terminal that goes on for ever each takes the place of the last.

    Elsewhere nothing is shown before there are two looks to compare.
    """
    is_live = output is Output.TABLE and looks is None and console.is_terminal
    seen = watch(places, period_s)
    if not is_live:
        next(seen)
    with contextlib.suppress(KeyboardInterrupt), _shown(output, console, is_live=is_live) as show:
        for _ in count() if looks is None else range(looks):
            show(next(seen))


def watch(places: Sequence[Path], period_s: float) -> Iterator[list[Row]]:
    """Yield the rows now, and again each period."""
    before = Look()
    while True:
        sights = [each for place in places for each in allocations.look(place)]
        now_ns = time.monotonic_ns()
        yield top_rows.rows(sights, before, now_ns)
        before = top_rows.look(sights, now_ns)
        time.sleep(period_s)


@contextlib.contextmanager
def _shown(output: Output, console: Console, *, is_live: bool) -> Iterator[Show]:
    if is_live:
        with Live(console=console, screen=True, auto_refresh=False) as live:
            yield lambda seen: live.update(top_table.table(seen), refresh=True)
    elif output is Output.JSON:
        yield lambda seen: _print(console, json.dumps([asdict(row) for row in seen]))
    else:
        yield lambda seen: console.print(top_table.table(seen))


def _print(console: Console, line: str) -> None:
    console.file.write(f"{line}\n")
    console.file.flush()
