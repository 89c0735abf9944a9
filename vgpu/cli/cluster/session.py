"""One command's connection: the REST, the namespace, and how text is written."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from vgpu.cli.cluster import tables, typed_names
from vgpu.cli.cluster.connection import endpoint
from vgpu.cli.cluster.connection.endpoint import ServerChoice
from vgpu.cli.cluster.connection.rest import Rest
from vgpu.cli.cluster.options import ResourceKind
from vgpu.cli.cluster.output import Format, OutputTable, rows_text
from vgpu.cli.cluster.pod_diagnosis import PodAddress
from vgpu.cli.cluster.tables import GPUS, GROUPS, NODES, PENDING, PODS
from vgpu.cli.failure import NOT_FOUND, WRONG_USAGE, CommandFailed
from vgpu.domain import printable

TABLES: Mapping[str, OutputTable] = {
    "gpus": GPUS,
    "nodes": NODES,
    "pods": PODS,
    "pending": PENDING,
    "groups": GROUPS,
}


@dataclass(frozen=True, slots=True)
class RestSession:
    """A command's connection; `namespace` is the one to use where a command names none."""

    rest: Rest
    namespace: str
    colour: bool

    @classmethod
    def open(cls, choice: ServerChoice, environment: Mapping[str, str], home: Path) -> "RestSession":
        """Find the server. Raises CommandFailed."""
        found = endpoint.find(choice, environment, home)
        is_coloured = sys.stdout.isatty() and not environment.get("NO_COLOR") and environment.get("TERM") != "dumb"
        return cls(Rest(found.endpoint, _warn), found.namespace, is_coloured)

    def rows(self, kind: ResourceKind, query: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return the rows of a list."""
        return self.rest.items(f"/{kind.plural}", query)

    def text(self, kind: ResourceKind, rows: list[dict[str, Any]], form: Format) -> str:
        """Return rows as text."""
        return rows_text(rows, TABLES[kind.plural], form, colour=self.colour)

    def show(self, rows: Sequence[dict[str, Any]], table: OutputTable, form: Format, *, whole: Any = None) -> None:
        """Write rows; of an empty list, people get a sentence on stderr. `whole` is as in `rows_text`."""
        if not rows and form in (Format.TABLE, Format.WIDE):
            typer.echo(table.empty, err=True)
            return
        typer.echo(rows_text(rows, table, form, colour=self.colour, whole=whole), nl=False)

    def gpu(self, name: str) -> dict[str, Any]:
        """Return the card named by UUID, the UUID's beginning, NODE/INDEX, or as `-o name`. Raises CommandFailed.

        A UUID names the card where it counts, if several nodes report it.
        """
        name = typed_names.without_kind(name, ResourceKind.GPUS)
        node, slash, index = name.rpartition("/")
        if slash:
            found = [
                row
                for row in self.rest.items("/gpus", {"node": node})
                if row["node"] == node and str(row["index"]) == index
            ]
        else:
            begun = [row for row in self.rest.items("/gpus") if row["uuid"].startswith(name)]
            found = [row for row in begun if not tables.counts_on(row)]
        if len(found) == 1:
            return found[0]
        if not name:
            raise CommandFailed("an empty name of a card: give a UUID or NODE/INDEX", WRONG_USAGE)
        problem = "more than one card begins like this" if found else "no such card; give a UUID or NODE/INDEX"
        raise CommandFailed(f"{name}: {problem}", NOT_FOUND)


def _warn(line: str) -> None:
    typer.echo(f"warning: {printable.line(line)}", err=True)


def pod_query(
    session: RestSession, namespace: str | None, names: list[str], selector: str, *, everywhere: bool
) -> dict[str, Any]:
    """Return the query of a list of pods; of names, some may have a namespace: NAMESPACE/NAME. Raises CommandFailed."""
    default = namespace or session.namespace
    addresses = [PodAddress.parse(name, default) for name in names]
    places = list(dict.fromkeys(address.namespace for address in addresses)) or [default]
    query: dict[str, Any] = {} if everywhere else {"namespace": places if len(places) > 1 else places[0]}
    if names:
        query["name"] = list(dict.fromkeys(address.name for address in addresses))
    if selector:
        query["selector"] = selector
    return query


def group_query(
    session: RestSession, namespace: str | None, names: list[str], selector: str, *, everywhere: bool
) -> dict[str, Any]:
    """Return the query of a list of groups in space. Groups that are named have their namespace in the name."""
    is_named = bool(names) and namespace is None
    query = pod_query(session, namespace, [], selector, everywhere=everywhere or is_named)
    readings = [reading for name in names for reading in typed_names.group_readings(name)]
    return query | ({"spaceGroup": readings} if names else {})
