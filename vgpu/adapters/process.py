"""The process that a part runs as: its command line, its log, its signals, the address it listens on."""

import asyncio
import contextlib
import ipaddress
import logging
import signal
import sys
from collections.abc import Callable, Coroutine, Iterator
from typing import Annotated, Any, TypeVar

import uvicorn
from pydantic import AfterValidator, ValidationError
from pydantic_settings import BaseSettings, CliApp

from vgpu.errors import VgpuError

S = TypeVar("S", bound=BaseSettings)


def _checked(text: str) -> str:
    host, _, port = text.rpartition(":")
    if not is_address(host.strip("[]")) or not port.isdigit() or int(port) > 65535:  # noqa: PLR2004 - TCP's ports
        raise ValueError(f"{text}: must be IP:PORT")
    return text


Address = Annotated[str, AfterValidator(_checked)]  # IP:PORT; no name, for the address decides whether TLS is demanded


def is_address(name: str) -> bool:
    """Whether this is an IP address and no DNS name."""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


class Listening(BaseSettings):
    """Settings of a program that serves at an address; each program has its own default."""

    listen: Address

    @property
    def host(self) -> str:
        """The address to listen on."""
        return self.listen.rpartition(":")[0].strip("[]")

    @property
    def port(self) -> int:
        """The port to listen on."""
        return int(self.listen.rpartition(":")[2])


def read_settings(kind: type[S]) -> S:
    """Read the command line and the environment; what is wrong is said by field, with exit status 2."""
    try:
        return CliApp.run(kind)
    except ValidationError as error:
        for problem in error.errors():
            print(f"{'.'.join(map(str, problem['loc'])) or 'settings'}: {problem['msg']}", file=sys.stderr)  # noqa: T201
        sys.exit(2)


def run(name: str, log_level: str, main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Log to stderr and run `main`, which SIGTERM and SIGINT cancel; exit 1 with one line where it cannot go on."""
    logging.basicConfig(
        level=log_level.upper(), stream=sys.stderr, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    try:
        asyncio.run(_until_told(main))
    except (VgpuError, OSError) as error:
        sys.exit(f"{name}: {error}")


async def _until_told(main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    running = asyncio.create_task(main())
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, running.cancel)
    with contextlib.suppress(asyncio.CancelledError):
        await running


class Server(uvicorn.Server):
    """Leaves the signals to us: uvicorn would raise them again before anything is closed."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture nothing."""
        yield

    async def serve_until_cancelled(self) -> None:
        """Serve; when cancelled, finish what has begun, and return."""
        serving = asyncio.create_task(self.serve())
        try:
            await asyncio.shield(serving)
        except asyncio.CancelledError:
            self.should_exit = True
            await serving
