"""`vgpu top gpus|nodes|pods|pending|groups`: the cluster's list, live by server-sent events."""

import contextlib
import json
from collections.abc import Iterable, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.live import Live
from rich.text import Text

from limiter.host import Host
from vgpu.cli.cluster import live, tables
from vgpu.cli.cluster.connection.endpoint import ServerChoice
from vgpu.cli.cluster.options import ResourceKind
from vgpu.cli.cluster.output import Format, rows_text
from vgpu.cli.cluster.session import RestSession
from vgpu.cli.failure import WRONG_USAGE, CommandFailed

EVENTS_OF: Final = {"gpus": "gpu", "nodes": "node", "pods": "pod", "pending": "pod", "groups": "pod"}


def run(
    kind: ResourceKind,
    namespace: str | None,
    choice: ServerChoice,
    environment: Mapping[str, str],
    home: Path,
    samples: int | None,
    host: Host,
    console: Console,
    *,
    as_json: bool = False,
) -> None:
    """Show the list until Ctrl-C, or `samples` times; on a terminal each table replaces the last.

    Pods that have ended are left out, and those that use most come first. As JSON each list is a line: what
    `get -o json` writes.
    """
    if namespace is not None and not kind.is_of_pods:
        refuse_namespace(kind.plural)
    session = RestSession.open(choice, environment, home)
    lists = watch(session, kind, {} if namespace is None else {"namespace": namespace}, host)
    is_live = samples is None and console.is_terminal and not as_json
    with contextlib.suppress(KeyboardInterrupt):
        if is_live:
            _redraw(session, kind, lists, console)
        for rows in islice(lists, samples):
            console.file.write(f"{json.dumps({'items': rows})}\n" if as_json else _text(session, kind, rows))
            console.file.flush()


def _redraw(session: RestSession, kind: ResourceKind, lists: Iterable[list[dict[str, Any]]], console: Console) -> None:
    """Show each list in place of the last on the terminal, with what makes its answers old below it."""
    session.rest.warn = lambda _: None  # the screen has the lines
    with Live(console=console, screen=True, auto_refresh=False) as screen:
        for rows in lists:
            warnings = [line for found in session.rest.stale.values() for line in found]
            text = _text(session, kind, rows) + "".join(f"warning: {line}\n" for line in warnings)
            shown = fitting(text, console.height)
            screen.update(Text.from_ansi(shown, no_wrap=True, overflow="ellipsis"), refresh=True)


def _text(session: RestSession, kind: ResourceKind, rows: list[dict[str, Any]]) -> str:
    """Return the table of a list; of cards, with the groups in space on them below it, where there are any."""
    groups = [
        {"node": row["node"], "index": row["index"], **group} for row in rows for group in row.get("spaceGroups") or ()
    ]
    shown = rows_text(groups, tables.SPACE_GROUPS, Format.TABLE) if groups else ""
    listed = busiest_first(rows) if kind.plural == "pods" else rows
    return session.text(kind, listed, Format.TABLE) + (f"\n{shown}" if shown else "")


def busiest_first(pods: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the pods that have not ended, those that use most of their cards' time first."""
    going = [pod for pod in pods if pod["status"] != "Ended"]
    return sorted(going, key=lambda pod: sum(gpu["usedCores"] or 0 for gpu in pod["gpus"]), reverse=True)


def fitting(text: str, height: int) -> str:
    """Return the lines that a screen of this height has room for, and how many more there are."""
    lines = text.splitlines()
    if len(lines) <= height:
        return text
    return "\n".join([*lines[: height - 1], f"{len(lines) - height + 1} more lines; a taller window has room for them"])


def refuse_local(given: Mapping[str, object]) -> None:
    """Raise CommandFailed for an option that is about programs of this machine; None is an option not given."""
    for option, value in given.items():
        if value is not None:
            why = "is for the programs of this machine; a list of the cluster is shown again after each change"
            raise CommandFailed(f"{option}: {why}", WRONG_USAGE)


def check_all_namespaces(kind: ResourceKind | None, namespace: str | None) -> None:
    """Raise CommandFailed where `--all-namespaces` is about nothing, or stands beside a namespace."""
    if namespace is not None:
        raise CommandFailed("give --namespace or --all-namespaces, not both", WRONG_USAGE)
    if kind is None or not kind.is_of_pods:
        refuse_namespace(kind.plural if kind else "programs of this machine", "--all-namespaces")


def refuse_namespace(what: str, option: str = "--namespace") -> None:
    """Raise CommandFailed: what is shown belongs to no namespace."""
    raise CommandFailed(
        f"{option}: {what} belong to no namespace; it is for `vgpu top pods`, `pending` and `groups`", WRONG_USAGE
    )


def watch(session: RestSession, kind: ResourceKind, query: dict[str, Any], host: Host) -> Any:
    """Yield the rows of a list, and again after each change. A change of a pod reads waiting pods, or groups, again."""
    filters = {key: value for key, value in query.items() if key == "namespace"}

    def read() -> list[dict[str, Any]]:
        return session.rows(kind, query)

    is_read_again = kind.plural in (ResourceKind.PENDING, ResourceKind.GROUPS)  # no event is about their rows
    if is_read_again or query.keys() - {"namespace"}:
        for _ in live.watch(session.rest, EVENTS_OF[kind.plural], list, filters, host.sleep):
            yield read()
    else:
        yield from live.watch(session.rest, EVENTS_OF[kind.plural], read, filters, host.sleep)
