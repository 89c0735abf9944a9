"""The commands about this machine: their options."""

import contextlib
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from limiter import launch, local_arbiter, local_state
from limiter.host import Host
from vgpu.cli import decimals, outcome
from vgpu.cli.local import allocations, cards, job_terms, log, running, set_limits, space_group
from vgpu.cli.local import run as child
from vgpu.cli.local.set_limits import LimitsChange
from vgpu.cli.local.space_group import LocalGroup
from vgpu.domain.asks.policy import MAX_PRIORITY, ComputePolicy, MemoryPolicy
from vgpu.domain.formats.limits import Limits
from vgpu.domain.quantity import FULL_CORES

Memory = Annotated[
    str | None, typer.Option(metavar="SIZE", help="memory of each card: 4Gi, 512Mi, or MiB as a plain number")
]
Cores = Annotated[
    int | None, typer.Option(metavar="PERCENT", min=1, max=FULL_CORES, help="percent of each card's time")
]
Policy = Annotated[
    ComputePolicy | None,
    typer.Option(
        help="fixed: at most the cores; burst: the cores and idle time; best-effort: idle time only "
        "(default: fixed with --gpu-cores, else burst)"
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


def add(app: typer.Typer, environment: Mapping[str, str], host: Host, now: Callable[[], datetime]) -> None:
    """Add the commands."""
    _add_run(app, environment, host)
    _add_set(app, environment)
    _add_log(app, environment, host, now)


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
        space: Annotated[
            str | None,
            typer.Option(
                metavar="GROUP",
                help="run at the same moment as your other programs of this group, which share one MPS server and its "
                "faults; their --gpu-cores add up",
            ),
        ] = None,
        sm_percentage: Annotated[
            int | None,
            typer.Option(metavar="PERCENT", help="with --space: percent of a card's multiprocessors, at most"),
        ] = None,
    ) -> None:
        """Run a command under limits of GPU memory and time, which all its processes share.

        The exit code is the command's; 127: not found, 126: not executable, 125: the limits cannot be set.
        """
        given = (gpu_mem, gpu_cores, compute_policy, space)
        outcome.require(given, "run: nothing to limit; give --gpu-mem, --gpu-cores, --compute-policy or --space")
        if sm_percentage is not None and space is None:
            outcome.fail("run: --sm-percentage: needs --space too", outcome.USAGE)

        def run_limited() -> int:
            policy = compute_policy or (ComputePolicy.BURST if space is not None else None)
            wanted = launch.parse(gpu_mem, gpu_cores, policy, memory_policy, priority or 0)
            if space is None:
                limits = launch.environment(wanted, environment, host, command)
            else:
                group = LocalGroup(space, local_state.state_directory(environment))
                wanted = space_group.membership(wanted, group, sm_percentage)
                limits = space_group.environment(wanted, group, environment, host, command)
            keep_arbiter = partial(local_arbiter.ensure_running, local_state.state_directory(environment))
            return child.run_limited(command, limits, lambda: _warn(wanted), keep_arbiter)

        raise typer.Exit(outcome.or_fail("run", run_limited))


def _warn(wanted: Limits) -> None:
    """Say where the limits mean nothing here. The command runs meanwhile: NVML may take 30 ms to start."""
    if text := cards.warning(cards.read(), wanted.cards):
        with contextlib.suppress(OSError):  # a full stderr must not end this process beside the command
            typer.echo(f"vgpu run: warning: {text}", err=True)


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
        outcome.require(given, "set: nothing to change; give --gpu-mem, --gpu-cores, --compute-policy or --priority")
        directories = outcome.or_fail("set", lambda: allocations.state_directories(environment, state_dir))

        def change() -> str:
            folder = set_limits.find_allocation(directories, allocation)
            set_limits.set_limits(folder, LimitsChange(*given), cards.read() if gpu_mem else cards.UNKNOWN)
            return job_terms.told(folder, running.read(directories))

        if of_job := outcome.or_fail("set", change):
            typer.echo(of_job)


def _add_log(app: typer.Typer, environment: Mapping[str, str], host: Host, now: Callable[[], datetime]) -> None:
    @app.command("log")
    def log_(
        query: Annotated[
            str,
            typer.Option(
                "--query", metavar="FIELDS", help="field names of nvidia-smi, separated by commas; `help` lists them"
            ),
        ] = log.DEFAULT_QUERY,
        form: Annotated[
            str, typer.Option("--format", metavar="FORMAT", help="csv, csv,noheader, csv,noheader,nounits")
        ] = "csv",
        loop: Annotated[
            float | None,
            decimals.option("-l", "--loop", metavar="SECONDS", least=0.1, most=86_400, meaning="repeat until Ctrl-C"),
        ] = None,
        count: Annotated[
            int | None, typer.Option("-c", "--count", metavar="COUNT", min=1, help="end after COUNT samples")
        ] = None,
        state_dir: State = None,
    ) -> None:
        """Log what the programs under limits on this machine use, as `nvidia-smi --query-gpu` logs cards.

        One line for each program and card. `memory.total` is the program's limit, as its own nvidia-smi shows it.
        """
        if query == "help":
            typer.echo(log.field_help())
            raise typer.Exit(0)
        asked = outcome.or_fail("log", lambda: log.parse(query, form))
        directories = outcome.or_fail("log", lambda: allocations.state_directories(environment, state_dir))
        log.run(directories, asked, loop, count, host, now, typer.echo)
