"""The process that a part runs as: its log, its signals, and its HTTP server."""

import asyncio
import contextlib
import os
import resource
import signal
import socket
import sys
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, Final

import uvicorn

from vgpu.adapters import log_lines
from vgpu.domain.errors import VgpuError

MAX_DESCRIPTORS: Final = 8_192
_LOWEST_PRIORITY: Final = 19  # nice


def run(name: str, log_level: str, main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Log to stderr and run `main`, which SIGTERM and SIGINT cancel; exit with status 1 and one line on an error.

    A second SIGTERM changes nothing, so that the cleanup is carried out: a child gets several when its parent's
    threads end one after the other (PR_SET_PDEATHSIG). A second SIGINT, of a person who does not wait, cancels again.
    Errors of tasks that ran together come in a group; a group with any other exception is a fault of this program.
    """
    log_lines.begin(log_level)
    raise_descriptors()
    try:
        asyncio.run(_until_signalled(main))
    except (VgpuError, OSError) as error:
        sys.exit(f"{name}: {log_lines.escaped(str(error))}")
    except ExceptionGroup as group:
        if group.split((VgpuError, OSError))[1] is not None:
            raise
        sys.exit(f"{name}: {log_lines.escaped('; '.join(_errors(group)))}")


def _errors(group: ExceptionGroup[Exception]) -> Iterator[str]:
    for error in group.exceptions:
        if isinstance(error, ExceptionGroup):
            yield from _errors(error)
        else:
            yield str(error)


def raise_descriptors() -> int:
    """Raise the limit of file descriptors as far as it may be, to 8,192 at most; return the limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MAX_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, MAX_DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        soft = wanted
    return MAX_DESCRIPTORS if soft == resource.RLIM_INFINITY else soft


def give_way() -> None:
    """Run only when the other processes of this session or control group leave a processor.

    Only the lowest priority does that: beside a process with nice 10, one that wakes up waits for the rest of its time
    slice, up to 4 ms (docs/adr/0134).
    """
    with contextlib.suppress(OSError):
        os.nice(_LOWEST_PRIORITY)


async def _until_signalled(main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    running = asyncio.create_task(main())

    def cancel_once() -> None:
        if not running.cancelling():
            running.cancel()

    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, cancel_once)
    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, running.cancel)
    with contextlib.suppress(asyncio.CancelledError):
        await running


class HttpServer(uvicorn.Server):
    """A server that handles no signals: uvicorn would raise them again before anything is closed."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture nothing."""
        yield

    async def serve_until_cancelled(
        self, sockets: list[socket.socket] | None = None, on_cancel: Callable[[], object] = lambda: None
    ) -> None:
        """Serve; when cancelled, call `on_cancel`, finish the requests in flight and return.

        Where `sockets` are given, they are listened on; else uvicorn ends the process if it cannot bind.
        """
        serving = asyncio.create_task(self.serve(sockets))
        try:
            await asyncio.shield(serving)
        except asyncio.CancelledError:
            self.should_exit = True
            on_cancel()
            await serving
