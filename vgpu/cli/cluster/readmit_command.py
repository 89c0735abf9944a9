"""`vgpu readmit`: creates again the pods that the webhook has not admitted."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from vgpu.cli import outcome
from vgpu.cli.cluster import endpoint, options, readmission
from vgpu.cli.cluster.endpoint import ServerChoice
from vgpu.cli.cluster.rest import Rest
from vgpu.cli.failure import ANSWER_IS_NO, EXIT_CODES, CommandFailed


def add(app: typer.Typer, environment: Mapping[str, str], home: Path) -> None:
    """Add the command."""

    @app.command(epilog=EXIT_CODES)
    @options.which_cluster("context", "kubeconfig")
    def readmit(
        namespace: options.Namespace = None,
        all_namespaces: options.AllNamespaces = False,
        dry_run: Annotated[bool, typer.Option("--dry-run", help="list the pods, and change nothing")] = False,
        *,
        chosen: ServerChoice,
    ) -> None:
        """Create GPU pods again that wait because the webhook did not answer when they were created.

        Needs your own right to list, delete and create pods.
        """
        found = outcome.or_fail("readmit", lambda: endpoint.api_server(chosen, environment, home))
        api = Rest(found.endpoint)
        place = None if all_namespaces else namespace or found.namespace
        pods = outcome.or_fail("readmit", lambda: readmission.waiting(api, place))
        if not pods:
            typer.echo("no pod waits for the webhook", err=True)
        failed = [pod for pod in pods if not _one(api, pod, dry_run=dry_run)]
        if failed:
            raise typer.Exit(ANSWER_IS_NO)


def _one(api: Rest, pod: readmission.Pod, *, dry_run: bool) -> bool:
    """Say what happens to a pod; return whether it is as wanted."""
    metadata = pod["metadata"]
    try:
        done = "is not admitted" if dry_run else readmission.readmit(api, pod)
        typer.echo(f"pod/{metadata['name']} ({metadata['namespace']}) {done}")
    except CommandFailed as error:
        typer.echo(f"pod/{metadata['name']} ({metadata['namespace']}): {error}", err=True)
        return False
    return True
