"""The command line program: about this machine, and about the cluster."""

import inspect
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from rich.console import Console
from typer.core import TyperCommand

import vgpu
from limiter.host import Host
from vgpu.cli import completion, decimals, outcome
from vgpu.cli.cluster import commands as about_cluster
from vgpu.cli.cluster import options, top_view, versions
from vgpu.cli.cluster.connection.endpoint import ServerChoice
from vgpu.cli.cluster.output import Format
from vgpu.cli.cluster.session import RestSession
from vgpu.cli.command_group import CommandGroup
from vgpu.cli.failure import ANSWER_IS_NO, EXIT_CODES
from vgpu.cli.local import allocations, top, workload_commands
from vgpu.cli.local import commands as about_machine
from vgpu.cli.local.commands import State

PIPE_COLUMNS: Final = 160
REFRESH_S: Final = 1.0
HELP_OPTIONS: Final = {"help_option_names": ["-h", "--help"]}
EPILOG: Final = f"{EXIT_CODES} `vgpu run` ends with the exit code of its command."


def build(
    environment: Mapping[str, str], host: Host, home: Path, now: Callable[[], datetime], *, is_plugin: bool = False
) -> typer.Typer:
    """Return the command line program.

    `environment` is what commands are started with; a kubeconfig is looked for in `home`; `now` is the wall clock. As
    kubectl's plugin, `top` alone shows pods of the cluster, and not programs of this machine.
    """
    app = typer.Typer(
        cls=CommandGroup,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        add_completion=False,
        context_settings=HELP_OPTIONS,
    )

    @app.callback(epilog=EPILOG)
    def vgpu_(
        version: Annotated[
            bool, typer.Option("--version", callback=_show_version, is_eager=True, help="show the version and end")
        ] = False,
    ) -> None:
        """Shares of GPUs: run programs with limits on this machine, and ask a cluster what its GPUs do."""

    _add_version(app, environment, home)
    completion.add(app)
    about_machine.add(app, environment, host, now)
    _add_top(app, environment, host, home, options.ResourceKind.PODS if is_plugin else None)
    workload_commands.add(app, environment, host, home, lambda: _console(environment), now)
    about_cluster.add(app, environment, host, home, now)
    for command in app.registered_commands:
        command.help = help_text(inspect.getdoc(command.callback) or command.help or "")
    return app


def help_text(docstring: str) -> str:
    """Return a docstring with one line for each paragraph: the terminal's width breaks the lines, not the source's."""
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in docstring.split("\n\n"))


def _show_version(is_wanted: bool) -> None:
    if is_wanted:
        typer.echo(f"vgpushare {vgpu.__version__}")
        raise typer.Exit(0)


class _VersionCommand(TyperCommand):
    """Takes `--server=URL` as `--server URL`: the option's value may be left out, which typer's options cannot say."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, [part for arg in args for part in _separated(arg)])


def _separated(argument: str) -> list[str]:
    option, equals, url = argument.partition("=")
    return [option, url] if equals and option == "--server" else [argument]


def _add_version(app: typer.Typer, environment: Mapping[str, str], home: Path) -> None:
    @app.command(cls=_VersionCommand, epilog=EXIT_CODES)
    @options.which_cluster("context", "kubeconfig", "token", "certificate_authority", "admin_namespace")
    def version(
        server: Annotated[
            bool,
            typer.Option(
                "--server", help="also of each part in the cluster; exit code 1: another version (a checkout has none)"
            ),
        ] = False,
        url: Annotated[
            str | None, typer.Argument(metavar="[URL]", help="with --server: the admin REST, as other commands take it")
        ] = None,
        output: options.Output = Format.TABLE,
        *,
        chosen: ServerChoice,
    ) -> None:
        """Show the version of this program, and with --server those of the parts in the cluster."""
        if not server and (url is not None or output is not Format.TABLE or chosen != ServerChoice()):
            outcome.fail("version: give --server too: the other options are about the cluster", outcome.USAGE)
        if not server:
            _show_version(True)
        asked = replace(chosen, server=url)
        session = outcome.or_fail("version", lambda: RestSession.open(asked, environment, home))
        listed = versions.rows(outcome.or_fail("version", lambda: session.rest.get("/versions")))
        session.show(listed, versions.VERSIONS, output)
        if different := versions.skew(listed):
            outcome.fail(f"version: {versions.warning(different)}", ANSWER_IS_NO)


def _add_top(
    app: typer.Typer, environment: Mapping[str, str], host: Host, home: Path, default: options.ResourceKind | None
) -> None:
    @app.command("top")
    @options.which_cluster()
    def top_(
        what: Annotated[
            options.ResourceKind | None,
            typer.Argument(metavar="[gpus|nodes|pods|pending|groups]", help="of the cluster, live"),
        ] = default,
        state_dir: State = None,
        output: Annotated[
            top.Output, typer.Option("--output", "-o", help="output format; json: a line for each sample")
        ] = top.Output.TABLE,
        once: Annotated[bool, typer.Option("--once", help="show one sample and end, as -c 1")] = False,
        samples: Annotated[
            int | None, typer.Option("-c", "--count", metavar="COUNT", min=1, help="end after COUNT samples")
        ] = None,
        refresh: Annotated[
            float | None,
            decimals.option(
                metavar="SECONDS",
                least=0.1,
                most=86_400,
                meaning="of this machine's programs: time between samples (default: 1.0)",
            ),
        ] = None,
        namespace: Annotated[
            str | None,
            typer.Option("--namespace", "-n", metavar="NAME", help="of pods, pending and groups: only this namespace"),
        ] = None,
        all_namespaces: Annotated[
            bool,
            typer.Option("--all-namespaces", "-A", help="of pods, pending and groups: every namespace, as without -n"),
        ] = False,
        *,
        chosen: ServerChoice,
    ) -> None:
        """Show the programs that run under limits on this machine; with an argument, a list of the cluster.

        Lists your own programs, and the node's containers where you may read them. A dash means that GPU time is not
        measured, as for a program without --gpu-cores that is alone on its card. In a pipe, one sample is printed where
        neither --count nor --refresh is given.
        """
        is_asked_once = once or (samples is None and refresh is None and not sys.stdout.isatty())
        count = 1 if is_asked_once else samples
        if all_namespaces:
            outcome.or_fail("top", lambda: top_view.check_all_namespaces(what, namespace))
        if what is not None:
            as_json = output is top.Output.JSON
            outcome.or_fail("top", lambda: top_view.refuse_local({"--refresh": refresh, "--state": state_dir}))
            outcome.or_fail(
                "top",
                lambda: top_view.run(
                    what, namespace, chosen, environment, home, count, host, _console(environment), as_json=as_json
                ),
            )
            return
        if namespace is not None:
            outcome.or_fail("top", lambda: top_view.refuse_namespace("programs of this machine"))
        if chosen != ServerChoice():
            outcome.fail("top: name what to show of the cluster: gpus, nodes, pods, pending or groups", outcome.USAGE)
        directories = outcome.or_fail("top", lambda: allocations.state_directories(environment, state_dir))
        top.run(directories, output, count, refresh or REFRESH_S, _console(environment), host)


def _console(environment: Mapping[str, str]) -> Console:
    """Return where tables are written: in a pipe wide enough for long names, unless COLUMNS is set."""
    return Console(width=None if sys.stdout.isatty() or "COLUMNS" in environment else PIPE_COLUMNS)
