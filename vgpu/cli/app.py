"""The commands, their options and what they say when something is wrong."""

import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Annotated, Final, NoReturn, TypeVar

import typer
from rich.console import Console

import vgpu
from limiter import launch, local_arbiter, local_state
from vgpu.cli.local import allocations, set_limits, top
from vgpu.cli.local import run as child
from vgpu.errors import VgpuError
from vgpu.policy import MAX_PRIORITY, ComputePolicy, MemoryPolicy
from vgpu.quantity import FULL_CORES

USAGE: Final = 2
PIPE_COLUMNS: Final = 160
FAILED: Final = 125  # ours, as `timeout` and `docker run` have it: the command was never tried

T = TypeVar("T")
Memory = Annotated[
    str | None, typer.Option(metavar="SIZE", help="memory of each card: 4Gi, 512MiB, or MiB as a plain number")
]
Cores = Annotated[
    int | None, typer.Option(metavar="PERCENT", min=1, max=FULL_CORES, help="percent of each card's time")
]
Policy = Annotated[
    ComputePolicy | None, typer.Option(help="how the percent are meant; fixed where --gpu-cores is given, else burst")
]
Priority = Annotated[
    int | None, typer.Option(metavar="N", min=0, max=MAX_PRIORITY, help="who goes first where several wait for a card")
]
State = Annotated[
    Path | None, typer.Option("--state", metavar="DIR", help="whose: yours and /var/lib/vgpu where it is not given")
]


def build(environment: Mapping[str, str]) -> typer.Typer:
    """Return the command line program; `environment` is what commands are started with."""
    app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False)

    @app.callback()
    def vgpu_() -> None:
        """Shares of GPUs."""

    @app.command()
    def version() -> None:
        """Say which version this is."""
        typer.echo(f"vgpushare {vgpu.__version__}")

    @app.command(context_settings={"allow_interspersed_args": False})
    def run(
        command: Annotated[list[str], typer.Argument(metavar="-- COMMAND...", help="what to run, with its arguments")],
        gpu_mem: Memory = None,
        gpu_cores: Cores = None,
        compute_policy: Policy = None,
        memory_policy: Annotated[
            MemoryPolicy, typer.Option(help="where the card is full, but the limit is not reached")
        ] = MemoryPolicy.REFUSE,
        priority: Priority = None,
    ) -> None:
        """Run a command with a limited share of the GPU, all its processes together.

        Exits as the command does; 127: not found, 126: not executable, 125: the limits cannot be set.
        """
        if gpu_mem is None and gpu_cores is None and compute_policy is None:
            _fail("run: nothing to limit; give --gpu-mem, --gpu-cores or --compute-policy", USAGE)
        limits = launch.environment(
            gpu_mem,
            gpu_cores,
            compute_policy,
            environment,
            memory_policy=memory_policy,
            priority=priority or 0,
            command=command,
        )
        keep_arbiter = partial(local_arbiter.keep, local_state.place(environment))
        raise typer.Exit(_or_fail("run", lambda: _limited(command, limits, keep_arbiter)))

    @app.command("top")
    def top_(
        state_dir: State = None,
        output: Annotated[top.Output, typer.Option("--output", "-o", help="how rows are written")] = top.Output.TABLE,
        once: Annotated[bool, typer.Option("--once", help="show one look: the same as -n 1")] = False,
        looks: Annotated[int | None, typer.Option("-n", metavar="COUNT", min=1, help="end after so many looks")] = None,
        refresh: Annotated[float, typer.Option(metavar="SECONDS", min=0.1, help="from look to look")] = 1.0,
    ) -> None:
        """Show what runs under limits on this machine: memory, share of each card's time, waits.

        Yours, and where you may read them the node's containers. A share that was never measured is a dash: who has
        no limit and no neighbour is not measured.
        """
        places = _or_fail("top", lambda: allocations.places(environment, state_dir))
        top.run(places, output, 1 if once else looks, refresh, _console(environment))

    @app.command("set")
    def set_(
        allocation: Annotated[str, typer.Argument(metavar="ID", help="as `vgpu top` shows it, or its beginning")],
        gpu_mem: Memory = None,
        gpu_cores: Cores = None,
        compute_policy: Policy = None,
        priority: Priority = None,
        state_dir: State = None,
    ) -> None:
        """Change the limits of what runs already; what is not given stays. In force within two seconds."""
        if gpu_mem is None and gpu_cores is None and compute_policy is None and priority is None:
            _fail("set: nothing to change; give --gpu-mem, --gpu-cores, --compute-policy or --priority", USAGE)
        places = _or_fail("set", lambda: allocations.places(environment, state_dir))
        _or_fail(
            "set",
            lambda: set_limits.rewrite(
                set_limits.find(places, allocation), gpu_mem, gpu_cores, compute_policy, priority
            ),
        )

    return app


def _console(environment: Mapping[str, str]) -> Console:
    """Where tables go: a pipe has room for long names, unless it is told otherwise."""
    return Console(width=None if sys.stdout.isatty() or "COLUMNS" in environment else PIPE_COLUMNS)


def _or_fail(verb: str, work: Callable[[], T]) -> T:
    """Do the work; what goes wrong ends us, with a word to whoever asked."""
    try:
        return work()
    except ValueError as error:
        _fail(f"{verb}: {error}", USAGE)
    except VgpuError as error:
        _fail(f"{verb}: {error}", FAILED)


def _limited(
    command: list[str], limits: AbstractContextManager[dict[str, str]], keep_arbiter: Callable[[], object]
) -> int:
    try:
        with limits as limited:
            return child.run(command, limited, keep_arbiter)
    except child.CannotStart as error:
        _fail(f"run: {error}", error.code)


def _fail(message: str, code: int) -> NoReturn:
    print(f"vgpu {message}", file=sys.stderr)  # noqa: T201 - a program's own error
    raise typer.Exit(code)
