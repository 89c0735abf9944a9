"""The commands, their options and what they say when something is wrong."""

import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from functools import partial
from typing import Annotated, Final, NoReturn

import typer

import vgpu
from cli import spawn
from limiter import LimiterError, launch, ondemand, state
from vgpu.policy import MAX_PRIORITY, ComputePolicy, MemoryPolicy

USAGE: Final = 2
FAILED: Final = 125  # ours, as `timeout` and `docker run` have it: the command was never tried


def build(environment: Mapping[str, str]) -> typer.Typer:
    """Return the command line program; `environment` is what commands are started with."""
    app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)

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
        gpu_mem: Annotated[
            str | None, typer.Option(metavar="SIZE", help="memory of each card: 4Gi, 512MiB, or MiB as a plain number")
        ] = None,
        gpu_cores: Annotated[
            int | None, typer.Option(metavar="PERCENT", min=1, max=100, help="percent of each card's time")
        ] = None,
        compute_policy: Annotated[
            ComputePolicy | None,
            typer.Option(help="how the percent are meant; fixed where --gpu-cores is given, else burst"),
        ] = None,
        memory_policy: Annotated[
            MemoryPolicy, typer.Option(help="where the card is full, but the limit is not reached")
        ] = MemoryPolicy.REFUSE,
        priority: Annotated[
            int, typer.Option(metavar="N", min=0, max=MAX_PRIORITY, help="who goes first where several wait for a card")
        ] = 0,
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
            priority=priority,
            command=command,
        )
        raise typer.Exit(_limited(command, limits, partial(ondemand.keep, state.place(environment))))

    return app


def _limited(
    command: list[str], limits: AbstractContextManager[dict[str, str]], keep_arbiter: Callable[[], object]
) -> int:
    try:
        with limits as limited:
            return spawn.run(command, limited, keep_arbiter)
    except ValueError as error:
        _fail(f"run: {error}", USAGE)
    except LimiterError as error:
        _fail(f"run: {error}", FAILED)
    except spawn.CannotStart as error:
        _fail(f"run: {error}", error.code)


def _fail(message: str, code: int) -> NoReturn:
    print(f"vgpu {message}", file=sys.stderr)  # noqa: T201 - a program's own error
    raise typer.Exit(code)
