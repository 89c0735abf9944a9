"""The commands, their options, and how they report errors."""

import sys
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Final, NoReturn, TypeVar

import typer
from rich.console import Console

import vgpu
from limiter import launch, local_arbiter, local_state
from limiter.host import Host
from vgpu.cli.local import allocations, set_limits, top
from vgpu.cli.local import run as child
from vgpu.cli.local.set_limits import Change
from vgpu.errors import VgpuError
from vgpu.policy import MAX_PRIORITY, ComputePolicy, MemoryPolicy
from vgpu.quantity import FULL_CORES

USAGE: Final = 2
FAILED: Final = 125  # the command was not started, as with `timeout` and `docker run`
PIPE_COLUMNS: Final = 160

T = TypeVar("T")
Memory = Annotated[
    str | None, typer.Option(metavar="SIZE", help="memory of each card: 4Gi, 512MiB, or MiB as a plain number")
]
Cores = Annotated[
    int | None, typer.Option(metavar="PERCENT", min=1, max=FULL_CORES, help="percent of each card's time")
]
Policy = Annotated[
    ComputePolicy | None,
    typer.Option(
        help="fixed: never more than the cores; burst: the cores are guaranteed, and idle time may be used; "
        "best-effort: idle time only (default: fixed with --gpu-cores, else burst)"
    ),
]
Priority = Annotated[
    int | None,
    typer.Option(
        metavar="N", min=0, max=MAX_PRIORITY, help="the highest goes first if several programs wait for a card"
    ),
]
State = Annotated[
    Path | None,
    typer.Option("--state", metavar="DIR", help="state directory (default: yours and /var/lib/vgpu)"),
]


def build(environment: Mapping[str, str], host: Host) -> typer.Typer:
    """Return the command line program; `environment` is what commands are started with."""
    app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False)

    @app.callback()
    def vgpu_() -> None:
        """Run programs with a part of a GPU: limits of memory and time, and what they use."""

    @app.command()
    def version() -> None:
        """Show the version."""
        typer.echo(f"vgpushare {vgpu.__version__}")

    _add_run(app, environment, host)
    _add_top(app, environment, host)
    _add_set(app, environment)
    return app


def _add_run(app: typer.Typer, environment: Mapping[str, str], host: Host) -> None:
    @app.command(context_settings={"allow_interspersed_args": False})
    def run(
        command: Annotated[list[str], typer.Argument(metavar="-- COMMAND...", help="the command and its arguments")],
        gpu_mem: Memory = None,
        gpu_cores: Cores = None,
        compute_policy: Policy = None,
        memory_policy: Annotated[
            MemoryPolicy,
            typer.Option(
                help="if the card is full and the limit is not reached: refuse an allocation, or spill it to the host"
            ),
        ] = MemoryPolicy.REFUSE,
        priority: Priority = None,
    ) -> None:
        """Run a command under limits of GPU memory and time, which all its processes share.

        The exit code is the command's; 127: not found, 126: not executable, 125: the limits cannot be set.
        """
        given = (gpu_mem, gpu_cores, compute_policy)
        _require(given, "run: nothing to limit; give --gpu-mem, --gpu-cores or --compute-policy")

        def run_limited() -> int:
            wanted = launch.parse(gpu_mem, gpu_cores, compute_policy, memory_policy, priority or 0)
            limits = launch.environment(wanted, environment, host, command)
            keep_arbiter = partial(local_arbiter.ensure_running, local_state.state_directory(environment))
            return child.run_limited(command, limits, keep_arbiter)

        raise typer.Exit(_or_fail("run", run_limited))


def _add_top(app: typer.Typer, environment: Mapping[str, str], host: Host) -> None:
    @app.command("top")
    def top_(
        state_dir: State = None,
        output: Annotated[top.Output, typer.Option("--output", "-o", help="output format")] = top.Output.TABLE,
        once: Annotated[bool, typer.Option("--once", help="show one sample and end, as -n 1")] = False,
        samples: Annotated[
            int | None, typer.Option("-n", metavar="COUNT", min=1, help="end after COUNT samples")
        ] = None,
        refresh: Annotated[float, typer.Option(metavar="SECONDS", min=0.1, help="time between samples")] = 1.0,
    ) -> None:
        """Show the programs that run under limits on this machine: memory, GPU time, waits.

        Lists your own programs, and the node's containers where you may read them. A dash means that GPU time is not
        measured, as for a program without --gpu-cores that is alone on its card.
        """
        directories = _or_fail("top", lambda: allocations.state_directories(environment, state_dir))
        top.run(directories, output, 1 if once else samples, refresh, _console(environment), host)


def _add_set(app: typer.Typer, environment: Mapping[str, str]) -> None:
    @app.command("set")
    def set_(
        allocation: Annotated[str, typer.Argument(metavar="ID", help="the ID that `vgpu top` shows, or its beginning")],
        gpu_mem: Memory = None,
        gpu_cores: Cores = None,
        compute_policy: Policy = None,
        priority: Priority = None,
        state_dir: State = None,
    ) -> None:
        """Change the limits of a running program within two seconds. Options that are not given stay as they are."""
        given = (gpu_mem, gpu_cores, compute_policy, priority)
        _require(given, "set: nothing to change; give --gpu-mem, --gpu-cores, --compute-policy or --priority")
        directories = _or_fail("set", lambda: allocations.state_directories(environment, state_dir))
        _or_fail(
            "set", lambda: set_limits.set_limits(set_limits.find_allocation(directories, allocation), Change(*given))
        )


def _console(environment: Mapping[str, str]) -> Console:
    """Return where tables are written: in a pipe wide enough for long names, unless COLUMNS is set."""
    return Console(width=None if sys.stdout.isatty() or "COLUMNS" in environment else PIPE_COLUMNS)


def _require(given: Iterable[object], message: str) -> None:
    """End the program where none of the options was given."""
    if all(each is None for each in given):
        _fail(message, USAGE)


def _or_fail(verb: str, work: Callable[[], T]) -> T:
    """Do the work; an error ends the program with one line on stderr."""
    try:
        return work()
    except ValueError as error:
        _fail(f"{verb}: {error}", USAGE)
    except child.CannotStart as error:
        _fail(f"{verb}: {error}", error.code)
    except VgpuError as error:
        _fail(f"{verb}: {error}", FAILED)


def _fail(message: str, code: int) -> NoReturn:
    print(f"vgpu {message}", file=sys.stderr)  # noqa: T201 - a program's own error
    raise typer.Exit(code)
