"""The commands about what was used: they ask the history of the admin REST."""

import re
from collections.abc import Callable
from typing import Annotated, Any, Final

import typer

from vgpu.cli import outcome
from vgpu.cli.cluster import options, tables
from vgpu.cli.cluster.connection.endpoint import ServerChoice
from vgpu.cli.cluster.output import Format
from vgpu.cli.cluster.session import RestSession
from vgpu.cli.failure import EXIT_CODES, NOT_FOUND, CommandFailed
from vgpu.domain.problem import clipped

_OWNER: Final = re.compile(r"[A-Za-z][A-Za-z0-9]*/[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")

Opened = Callable[[str, ServerChoice], RestSession]  # of a verb
Since = Annotated[str, typer.Option(metavar="TIME", help="7d, 24h, 30m, or a date such as 2026-11-01")]
Labels = Annotated[str, typer.Option("--selector", "-l", metavar="KEY=VALUE", help="labels of pods, with commas")]


def add(app: typer.Typer, opened: Opened) -> None:
    """Add the commands."""
    _add_usage(app, opened)
    _add_rightsize(app, opened)


def _add_usage(app: typer.Typer, opened: Opened) -> None:
    @app.command(epilog=EXIT_CODES)
    @options.which_cluster()
    def usage(
        by: Annotated[
            str, typer.Option(metavar="GROUPS", help="namespace, owner, label:KEY, card, model, node, day, with commas")
        ] = "namespace",
        since: Since = "7d",
        until: Annotated[str, typer.Option(metavar="TIME", help="as --since (default: now)")] = "",
        namespace: options.NamespaceFilter = None,
        label: Labels = "",
        output: options.Output = Format.TABLE,
        *,
        chosen: ServerChoice,
    ) -> None:
        """Report what pods used and cost, in every namespace that you may see.

        GPU-HOURS counts each share as the larger of its part of memory and of time: four quarters of a card for an
        hour are one. ASKED and USED are hours of guaranteed and of measured GPU time, WAITED is the mean time until a
        pod was bound. CSV has seconds.
        """
        session = opened("usage", chosen)
        groups = [dimension.strip() for dimension in by.split(",")]
        query: dict[str, Any] = {"by": groups, "since": since, "until": until, "limit": 10_000} | _chosen(
            namespace, label
        )
        found = outcome.or_fail("usage", lambda: session.rest.get("/usage", query))
        session.show(found["items"], tables.usage(groups), output, whole=found)


def _add_rightsize(app: typer.Typer, opened: Opened) -> None:
    @app.command(epilog=EXIT_CODES)
    @options.which_cluster()
    def rightsize(
        owner: Annotated[
            str, typer.Argument(metavar="[KIND/NAME]", help="only this Deployment, Job..., such as Deployment/train")
        ] = "",
        worst: Annotated[
            bool, typer.Option("--worst", help="those first that leave the most guaranteed GPU time unused")
        ] = False,
        since: Since = "7d",
        namespace: options.NamespaceFilter = None,
        label: Labels = "",
        output: options.Output = Format.TABLE,
        *,
        chosen: ServerChoice,
    ) -> None:
        """Compare what containers used with what they ask for, and say what they should ask for.

        ASKED, MEAN and P95 are percent of a GPU's time: 95 % of the minutes used P95 or less. Advice needs an hour of
        measurement. Memory that is asked for and never used keeps other pods out.
        """
        if owner and not _OWNER.fullmatch(owner):
            why = f"{clipped(owner)!r} is not KIND/NAME, such as Deployment/train or Pod/train-0"
            outcome.fail(f"rightsize: {why}", outcome.USAGE)
        session = opened("rightsize", chosen)
        query: dict[str, Any] = {"since": since, "limit": 1000} | _chosen(namespace, label, owner=owner)

        def asked() -> Any:
            found = session.rest.get("/rightsize", {**query, "worst": True} if worst else query)
            if owner and not found["items"] and not (worst and session.rest.get("/rightsize", query)["items"]):
                where = f" in namespace {namespace}" if namespace else ""
                why = (
                    f"no pod of it was measured since {since}{where}; capital letters count: Deployment, not deployment"
                )
                raise CommandFailed(f"{owner}: {why}. vgpu rightsize alone lists what was measured", NOT_FOUND)
            return found

        found = outcome.or_fail("rightsize", asked)
        session.show(found["items"], tables.RIGHT_SIZES, output, whole=found)


def _chosen(namespace: str | None, label: str, **more: str) -> dict[str, Any]:
    """Return the part of a query that chooses pods: what was given."""
    given = {"namespace": namespace, "label": label.split(",") if label else None, **more}
    return {key: value for key, value in given.items() if value}
