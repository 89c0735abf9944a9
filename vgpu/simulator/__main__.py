"""`python -m vgpu.simulator`, which is `make run`: the whole control plane on this machine, until Ctrl-C."""

import asyncio
import os
import shutil
import signal
import sys
import tempfile
import uuid
from datetime import UTC, datetime
from pathlib import Path

from vgpu.adapters import extras

with extras.needed("cluster", by="simulator"):
    from rich.console import Console

    from vgpu.adapters import settings as settings_reader
    from vgpu.simulator import session
    from vgpu.simulator.display import ChangeLines, LiveScreen
    from vgpu.simulator.ports import PortTaken
    from vgpu.simulator.processes import PartExited
    from vgpu.simulator.session import Addresses, PartsNotReady, RunContext
    from vgpu.simulator.settings import SimulatorSettings

WAITING = "starting the extender and the webhook"


class _Console(Console):
    """A console that raises BrokenPipeError for a broken pipe; rich would exit at once."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def main() -> None:
    """Run until SIGINT or SIGTERM; exit with status 2 on wrong settings, 1 where a part exits by itself."""
    settings = settings_reader.read(SimulatorSettings, os.environ)
    try:
        asyncio.run(_run(settings))
    except (PartExited, PartsNotReady, PortTaken) as error:
        sys.exit(f"simulator: {error}")
    except BrokenPipeError:  # the reader of stdout is gone; nothing may be written any more, not even at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _vgpu() -> str:
    """Return how `vgpu` is started here: a checkout has the program as a module only."""
    return "vgpu" if shutil.which("vgpu") else f"{os.path.relpath(sys.executable)} -m vgpu.cli"


def _in_a_pipe(at: Addresses, folder: Path) -> list[str]:
    return [
        f"extender    {at.extender}    try: curl {at.extender}/healthz",
        f"dashboard   {at.admin}/    in a browser; the admin REST is there too",
        f"webhook     {at.webhook}",
        f"Kubernetes  {at.kubernetes}   try: kubectl --server={at.kubernetes} get pods",
        f"try: {_vgpu()} get gpus --server {at.admin}",
        f"try: {_vgpu()} explain too-large --server {at.admin}",
        f"logs        {folder}/extender.log, {folder}/webhook.log",
        "Ctrl-C stops everything, and removes the logs",
    ]


def _on_terminal(at: Addresses, folder: Path) -> list[str]:
    """Return lines that eighty columns hold."""
    return [
        f"dashboard {at.admin}/   extender {at.extender}",
        f"Kubernetes {at.kubernetes}   webhook {at.webhook}",
        f"try: kubectl --server={at.kubernetes} get pods   Ctrl-C stops everything",
        f"try: {_vgpu()} get gpus --server {at.admin}",
        f"try: {_vgpu()} explain too-large --server {at.admin}",
        f"logs {folder}/*.log",
    ]


async def _run(settings: SimulatorSettings) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    console = _Console(force_terminal=sys.stdout.isatty())
    on_terminal = console.is_terminal and not console.is_dumb_terminal
    display = LiveScreen(console) if on_terminal else ChangeLines(console)
    waiting = console.status("")
    if on_terminal:
        waiting.start()

    def say(progress: str) -> None:
        if on_terminal:
            waiting.update(progress)
        else:  # the first line of stdout is the extender's address
            print(progress, file=sys.stderr, flush=True)  # noqa: T201 - a console would wrap it

    say(WAITING)
    with tempfile.TemporaryDirectory(prefix="vgpu-simulator-") as name:
        folder = Path(name)

        def announce(at: Addresses) -> None:
            waiting.stop()
            display.start(_on_terminal(at, folder) if on_terminal else _in_a_pipe(at, folder), at.admin)

        context = RunContext(settings, os.environ, folder, display, say, announce, stop)
        try:
            await session.run(context, lambda: datetime.now(UTC), lambda: str(uuid.uuid4()))
        finally:
            waiting.stop()
            display.stop()


if __name__ == "__main__":
    main()
