"""`vgpu readmit`: creates again the pods that the webhook has not admitted."""

import shlex
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated, Final

import typer

from limiter.host import Host
from vgpu.cli import decimals, outcome
from vgpu.cli.cluster import options, typed_names
from vgpu.cli.cluster.connection import endpoint
from vgpu.cli.cluster.connection.endpoint import ServerChoice
from vgpu.cli.cluster.connection.rest import Rest
from vgpu.cli.cluster.options import ResourceKind
from vgpu.cli.cluster.pod_diagnosis import PodAddress
from vgpu.cli.cluster.readmit import readmission, saved_manifests
from vgpu.cli.cluster.readmit.pod_replacement import Pod
from vgpu.cli.failure import ANSWER_IS_NO, EXIT_CODES, NOT_FOUND, CommandFailed

_ENDINGS: Final = (signal.SIGTERM, signal.SIGHUP)


def add(app: typer.Typer, environment: Mapping[str, str], host: Host, home: Path) -> None:
    """Add the command."""

    @app.command(epilog=EXIT_CODES)
    @options.which_cluster("context", "kubeconfig")
    def readmit(
        names: Annotated[
            list[str] | None,
            typer.Argument(metavar="[POD]...", help="only these: NAME, or NAMESPACE/NAME (default: all that wait so)"),
        ] = None,
        namespace: options.NamespaceOption = None,
        all_namespaces: options.AllNamespaces = False,
        dry_run: Annotated[bool, typer.Option("--dry-run", help="list the pods, and change nothing")] = False,
        timeout: Annotated[
            float,
            decimals.option(
                metavar="SECONDS", least=1, most=86_400, meaning="how long to wait until a deleted pod is gone"
            ),
        ] = 60.0,
        *,
        chosen: ServerChoice,
    ) -> None:
        """Create GPU pods again that wait because the webhook did not answer when they were created.

        Needs your own right to list, get, delete and create pods. A pod without a controller is deleted first: its
        manifest is kept in a file until the new pod exists.
        """
        found = outcome.or_fail("readmit", lambda: endpoint.api_server(chosen, environment, home))
        api = Rest(found.endpoint)
        place = None if all_namespaces else namespace or found.namespace
        folder = saved_manifests.folder(environment, home, found.endpoint.url)
        left = _say_what_is_left(folder, place)
        if names and all_namespaces:
            outcome.fail("readmit: -A: give it without POD, or name pods as NAMESPACE/NAME", outcome.USAGE)

        def wanted() -> list[Pod]:
            if not names:
                return readmission.waiting(api, place)
            return _named(
                api, [PodAddress.parse(name, place or "") for name in typed_names.after_kind(ResourceKind.POD, names)]
            )

        pods = outcome.or_fail("readmit", wanted)
        if not pods and not left:
            typer.echo("no pod waits for the webhook", err=True)
        keep = partial(saved_manifests.kept, folder, say=partial(typer.echo, err=True))

        def readmitted(pod: Pod) -> str:
            return readmission.readmit(api, pod, keep, host, timeout)

        with ended_like_ctrl_c():
            failed = [pod for pod in pods if not _one(pod, (lambda _: "is not admitted") if dry_run else readmitted)]
        if failed or left:
            raise typer.Exit(ANSWER_IS_NO)


def _named(api: Rest, addresses: list[PodAddress]) -> list[Pod]:
    """Return the named pods. Raises CommandFailed where one does not wait for the webhook: then nothing is changed."""
    listed = {
        PodAddress(pod["metadata"]["namespace"], pod["metadata"]["name"]): pod
        for namespace in dict.fromkeys(address.namespace for address in addresses)
        for pod in readmission.waiting(api, namespace)
    }
    if missing := [f"{address.namespace}/{address.name}" for address in addresses if address not in listed]:
        why = "does not exist, or does not wait for the webhook; see vgpu explain"
        raise CommandFailed(f"pod {', '.join(missing)}: {why}. Nothing was changed", NOT_FOUND)
    return [listed[address] for address in dict.fromkeys(addresses)]


def _say_what_is_left(folder: Path, namespace: str | None) -> bool:
    """Name the manifests that earlier runs left; return whether there are any."""
    left = list(saved_manifests.left(folder, namespace))
    for path, pod in left:
        create = f"kubectl create -f {shlex.quote(str(path))}"
        typer.echo(f"pod {pod}: an earlier run deleted it. If it is missing: {create}; then delete the file", err=True)
    return bool(left)


def _one(pod: Pod, act: readmission.Act) -> bool:
    """Do something with a pod and say what was done; return whether it is as wanted."""
    metadata = pod["metadata"]
    try:
        typer.echo(f"pod/{metadata['name']} ({metadata['namespace']}) {act(pod)}")
    except CommandFailed as error:
        typer.echo(f"pod/{metadata['name']} ({metadata['namespace']}): {error}", err=True)
        return False
    return True


@contextmanager
def ended_like_ctrl_c() -> Iterator[None]:
    """Let signals that end a program raise KeyboardInterrupt, so that a deleted pod's manifest is named."""
    before = {number: signal.getsignal(number) for number in _ENDINGS}
    for number, handler in before.items():
        if handler is signal.SIG_DFL:
            signal.signal(number, signal.default_int_handler)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
