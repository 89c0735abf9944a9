"""How commands end: one line on stderr, and an exit code."""

import contextlib
import sys
from collections.abc import Callable, Iterable
from typing import Final, NoReturn, TypeVar

import typer

from vgpu.cli.failure import CommandFailed
from vgpu.domain import printable
from vgpu.domain.errors import MalformedError, VgpuError

USAGE: Final = 2
FAILED: Final = 125  # the command was not started, as with `timeout` and `docker run`

T = TypeVar("T")


def require(given: Iterable[object], message: str) -> None:
    """End the program where none of the options was given."""
    if all(value is None for value in given):
        fail(message, USAGE)


def or_fail(verb: str, work: Callable[[], T]) -> T:
    """Do the work; an error ends the program with one line on stderr."""
    try:
        return work()
    except (ValueError, MalformedError) as error:
        fail(f"{verb}: {error}", USAGE)
    except CommandFailed as error:
        fail(f"{verb}: {error}", error.code)
    except VgpuError as error:
        fail(f"{verb}: {error}", FAILED)


def fail(message: str, code: int) -> NoReturn:
    """End the program."""
    with contextlib.suppress(OSError):  # a full or closed stderr does not change the exit code
        print(f"vgpu {printable.lines(message)}", file=sys.stderr)  # noqa: T201 - a program's own error
    raise typer.Exit(code)
