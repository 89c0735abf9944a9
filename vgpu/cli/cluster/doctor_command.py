"""`vgpu doctor`: what is wrong, and the archive for those who are to help."""

from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from vgpu.cli import outcome
from vgpu.cli.cluster import describe, options, other_pods, tables
from vgpu.cli.cluster.bundle import archive, collect
from vgpu.cli.cluster.bundle.collect import BundleSources
from vgpu.cli.cluster.connection import endpoint
from vgpu.cli.cluster.connection.endpoint import ServerChoice
from vgpu.cli.cluster.connection.rest import Rest
from vgpu.cli.cluster.output import Format, document_text, rows_text
from vgpu.cli.cluster.session import RestSession
from vgpu.cli.failure import ANSWER_IS_NO, EXIT_CODES, CommandFailed
from vgpu.domain import printable

T = TypeVar("T")


def add(app: typer.Typer, environment: Mapping[str, str], home: Path, now: Callable[[], datetime]) -> None:
    """Add the command."""

    @app.command(epilog=EXIT_CODES)
    @options.which_cluster()
    def doctor(
        output: options.Output = Format.TABLE,
        bundle: Annotated[
            Path | None,
            typer.Option(
                metavar="PATH",
                help="also write an archive for a support case, without secrets: a .tar.gz file, or a folder for it",
            ),
        ] = None,
        *,
        chosen: ServerChoice,
    ) -> None:
        """Look for what does not heal by itself: nodes, GPUs and pods. Exit code 1: an error was found.

        With --bundle, answers of the admin REST, the installation's objects, logs and metrics are written to a file,
        with your own rights; what you may not read is left out, and named.
        """
        opened = _attempted(lambda: RestSession.open(chosen, environment, home))
        if bundle is not None:
            admin = str(opened) if isinstance(opened, CommandFailed) else opened.rest
            asked = BundleSources(admin, _api_server(chosen, environment, home), chosen.admin_namespace)
            outcome.or_fail("doctor", lambda: _write_bundle(bundle, asked, now()))
        session = outcome.or_fail("doctor", lambda: _succeeded(opened))
        found = outcome.or_fail("doctor", lambda: session.rest.get("/summary"))
        found["findings"] += other_pods.waiting(chosen, environment, home)
        typer.echo(_text(found, output, colour=session.colour), nl=False)
        if any(finding["severity"] == "error" for finding in found["findings"]):
            raise typer.Exit(ANSWER_IS_NO)


def _text(found: Any, output: Format, *, colour: bool) -> str:
    text = document_text(found, output)
    if text is not None:
        return text
    listed = rows_text(found["findings"], tables.FINDINGS, output, colour=colour)
    if output in (Format.CSV, Format.NAME):
        return listed
    people = f"{describe.summary(found)}\n{listed if found['findings'] else 'nothing is wrong'}"
    return f"{people.rstrip()}\n"


def _write_bundle(wanted: Path, asked: BundleSources, at: datetime) -> None:
    path = archive.path_of(wanted, at)
    bundle = collect.write(path, asked, at, lambda what: _say(f"collecting {what}"))
    for line in collect.said(bundle, path, path.stat().st_size):
        _say(line)


def _api_server(chosen: ServerChoice, environment: Mapping[str, str], home: Path) -> Rest | str:
    """Return a client of the server's own cluster: the current context may be of another one."""
    if endpoint.is_direct(chosen, environment):
        return "the server was named by --server or VGPU_SERVER; give --kubeconfig or --context instead"
    found = _attempted(lambda: endpoint.api_server(chosen, environment, home))
    return str(found) if isinstance(found, CommandFailed) else Rest(found.endpoint)


def _attempted(work: Callable[[], T]) -> T | CommandFailed:
    """Return what the work returns, or its failure: a bundle is written all the same."""
    try:
        return work()
    except CommandFailed as error:
        return error


def _succeeded(found: T | CommandFailed) -> T:
    if isinstance(found, CommandFailed):
        raise found
    return found


def _say(line: str) -> None:
    typer.echo(printable.line(line), err=True)
