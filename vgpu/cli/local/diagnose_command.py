"""The command `vgpu diagnose`: its options. What carries it out is imported when it runs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console

from limiter.host import Host
from vgpu.cli import decimals, option_classes, outcome
from vgpu.cli.cluster import options, pod_diagnosis
from vgpu.cli.cluster.connection import endpoint
from vgpu.cli.cluster.connection.endpoint import ServerChoice
from vgpu.cli.cluster.connection.rest import Rest
from vgpu.cli.cluster.pod_diagnosis import PodAddress
from vgpu.cli.failure import ANSWER_IS_NO
from vgpu.cli.local import allocations
from vgpu.cli.local.commands import State
from vgpu.cli.local.top import Output
from vgpu.workloads.diagnose.finding import ProgramDiagnosis

_ALONE: Final = "POD stands alone, without --live, --script, --nccl-log, --data, --job"


@dataclass(frozen=True, slots=True)
class DiagnosedFiles:
    """The options that name files to diagnose, with what is asked about them."""

    script: Annotated[
        Path | None, typer.Option(metavar="FILE", help="a training script of PyTorch or TensorFlow; it is not run")
    ] = None
    nccl_log: Annotated[Path | None, typer.Option(metavar="FILE", help="a log of NCCL_DEBUG=INFO")] = None
    data: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="the files of a data set; some are read, to measure the storage"),
    ] = None
    needs: Annotated[
        float, decimals.option(metavar="MB/S", least=0, meaning="with --data: the rate that the program needs")
    ] = 200.0
    job: Annotated[
        Path | None, typer.Option(metavar="FILE", help="what `kubectl get pods,nodes -A -o json` writes")
    ] = None
    switch_label: Annotated[
        str, typer.Option(metavar="LABEL", help="with --job: the label of nodes that names their switch")
    ] = "topology.kubernetes.io/rack"


def add(
    app: typer.Typer, environment: Mapping[str, str], host: Host, home: Path, console: Callable[[], Console]
) -> None:
    """Add the command; `console` makes what tables are written to, a kubeconfig is looked for in `home`."""

    @app.command("diagnose")
    @option_classes.expanded
    @options.which_cluster("context", "kubeconfig", "admin_namespace")
    def diagnose_(
        pod: Annotated[
            str | None, typer.Argument(metavar="[POD]", help="a running pod of the cluster: NAME, or NAMESPACE/NAME")
        ] = None,
        *,
        files: DiagnosedFiles,
        live: Annotated[
            str | None,
            typer.Option(metavar="NAME", help="a running program of this machine: ID, or part of its command or pod"),
        ] = None,
        seconds: Annotated[
            float,
            decimals.option(metavar="SECONDS", least=2, most=3600, meaning="with POD or --live: how long to watch"),
        ] = 10.0,
        namespace: options.NamespaceOption = None,
        state: State = None,
        output: Annotated[Output, typer.Option("--output", "-o", help="output format")] = Output.TABLE,
        chosen: ServerChoice,
    ) -> None:
        """Say why a program uses its GPU badly: while it runs, or from its script, NCCL's log, its data or its pods.

        POD is watched from its node's device plugin, which needs the right to exec into pods of --admin-namespace.

        Each finding has a code, what was seen, why it costs, what to do, and how much it may bring. The exit code is 1
        where something was found.
        """
        from vgpu.cli.local import diagnose  # noqa: PLC0415 - see above
        from vgpu.cli.local import live as running  # noqa: PLC0415

        checks = [
            (files.script, diagnose.of_script),
            (files.nccl_log, diagnose.of_nccl_log),
            (files.data, lambda path: diagnose.of_data(path, files.needs, host)),
            (files.job, lambda path: diagnose.of_job(path, files.switch_label)),
        ]
        here = [*(path for path, _ in checks), live]
        outcome.require([*here, pod], "diagnose: give POD, --live, --script, --nccl-log, --data or --job")
        if pod is not None:
            if any(option is not None for option in here):
                outcome.fail(f"diagnose: {_ALONE}", outcome.USAGE)
            if Path(pod).is_file():
                outcome.fail(f"diagnose: {pod} is a file: give it with --script, --nccl-log or --job", outcome.USAGE)
            watch = partial(_of_pod, pod, namespace, chosen, environment, home, seconds, output)
            text, code = outcome.or_fail("diagnose", watch)
            typer.echo(text, nl=False)
            raise typer.Exit(code)
        found = [
            ProgramDiagnosis(str(path), outcome.or_fail("diagnose", partial(check, path)))
            for path, check in checks
            if path is not None
        ]
        if live is not None:
            directories = outcome.or_fail("diagnose", lambda: allocations.state_directories(environment, state))
            found += outcome.or_fail("diagnose", lambda: running.diagnose(directories, live, seconds, host))
        for made in found:
            diagnose.show(made, output, console())
        if any(made.findings for made in found):
            raise typer.Exit(ANSWER_IS_NO)


def _of_pod(
    text: str,
    namespace: str | None,
    choice: ServerChoice,
    environment: Mapping[str, str],
    home: Path,
    seconds: float,
    output: Output,
) -> tuple[str, int]:
    """Diagnose a pod; return what the device plugin's pod printed, and the exit code. Raises CommandFailed."""
    found = endpoint.api_server(choice, environment, home)
    pod = PodAddress.parse(text, namespace or found.namespace)
    plugin = pod_diagnosis.plugin_beside(Rest(found.endpoint), pod, choice.admin_namespace)
    arguments = pod_diagnosis.command(pod, plugin, choice.admin_namespace, seconds, output)
    return pod_diagnosis.run(pod_diagnosis.kubectl_command(choice.context, choice.kubeconfig), arguments, seconds)
