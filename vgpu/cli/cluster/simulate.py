"""`vgpu simulate`: the pods of manifests, placed by the server or in a cluster whose objects are in a file."""

import re
from pathlib import Path
from typing import Final

import typer

from vgpu.cli.cluster import describe, file_simulation, manifests, tables
from vgpu.cli.cluster.output import Format, rows_text
from vgpu.cli.cluster.session import RestSession
from vgpu.cli.failure import WRONG_USAGE, CommandFailed
from vgpu.domain import pod_warnings, printable
from vgpu.domain.json_types import JsonObject
from vgpu.placement.cluster_objects import UNREADABLE
from vgpu.placement.policies import DefaultPolicies
from vgpu.placement.simulation.simulate import MAX_IN_REQUEST

PEOPLE: Final = (Format.TABLE, Format.WIDE)
MAX_SKIPPED: Final = 5  # objects that are named
# The server names a field of the request, which a user never sees: `pods[0].pod.spec.containers[main]...`.
_ENTRY: Final = re.compile(r"pods\[(\d{1,4})\]\.(?:pod\.)?", re.ASCII)


def on_server(session: RestSession, files: list[Path] | None, namespace: str | None) -> JsonObject:
    """Let the server place the pods. Raises CommandFailed."""
    if not files:
        raise CommandFailed("-f: give a file with the pods to place", WRONG_USAGE)
    entries = _entries(files, namespace or session.namespace, MAX_IN_REQUEST)
    try:
        found: JsonObject = session.rest.post("/simulate", {"pods": entries})
    except CommandFailed as error:
        raise CommandFailed(_of_pod(str(error), entries), error.code) from error
    return {**found, "pods": [_without_numbers(row) for row in found["pods"]]}


def _of_pod(refusal: str, entries: list[JsonObject]) -> str:
    """Return a refusal of the request with the pod's name in place of its number in the request."""
    match = _ENTRY.match(refusal)
    if match is None or int(match[1]) >= len(entries):
        return refusal
    name = entries[int(match[1])]["pod"]["metadata"].get("name")
    return f"pod {name}: {refusal[match.end() :]}"


def _without_numbers(row: JsonObject) -> JsonObject:
    """Return a pod's row whose problems do not have the pod's number in the request: the pod's name is in the row."""
    problems = row.get("problems")
    return {**row, "problems": [_ENTRY.sub("", said, count=1) for said in problems]} if problems else row


def in_file(path: Path, files: list[Path] | None, namespace: str | None, defaults: DefaultPolicies) -> JsonObject:
    """Place the pods, or without manifests the waiting pods of the file, among the nodes of the file.

    Objects of the file that cannot be read are named on stderr. Raises CommandFailed.
    """
    cluster = file_simulation.read(path)
    for skipped in cluster.skipped[:MAX_SKIPPED]:
        typer.echo(f"vgpu simulate: --cluster: left out: {skipped}", err=True)
    if len(cluster.skipped) > MAX_SKIPPED:
        typer.echo(f"vgpu simulate: --cluster: {len(cluster.skipped)} objects are left out in all", err=True)
    entries = _entries(files, namespace or "default", file_simulation.MAX_PODS) if files else []
    return file_simulation.run(cluster, entries, defaults)


def _entries(files: list[Path], namespace: str, most: int) -> list[JsonObject]:
    """Read manifests; what has no effect in them is named on stderr. Raises CommandFailed."""
    found = manifests.read(files, namespace, most)
    said = [line for entry in found.entries for line in _warnings(entry["pod"])]
    for line in [*found.ignored, *said][:MAX_SKIPPED]:
        typer.echo(f"vgpu simulate: {printable.line(line)}", err=True)
    return found.entries


def _warnings(pod: JsonObject) -> list[str]:
    """Return what the webhook would say of a pod that it admits; nothing of one that cannot be read."""
    try:
        return [f"pod {pod['metadata'].get('name')}: {said}" for said in pod_warnings.warnings(pod)]
    except UNREADABLE:
        return []


def text(found: JsonObject, form: Format, *, colour: bool = False) -> str:
    """Return a simulation as text; people get a sum of it below the table."""
    listed = rows_text(found["pods"], tables.LANDINGS, form, colour=colour, whole=found)
    return listed + describe.simulation(found) if form in PEOPLE else listed
