"""The program's standard streams, where one is closed, full, or cannot encode a text: no command ends with a traceback.

The file of a closed stream is not left free: the next file that is opened would take its number, and a command under
`vgpu run` would write into it.
"""

import contextlib
import io
import os
import sys
from collections.abc import Callable
from typing import Final, TextIO

from vgpu.cli.failure import ANSWER_IS_NO, OUTPUT_FAILED

# How /dev/null stands in for a closed stream: reading and writing fail as before, and messages get lost.
_STAND_INS: Final = ((0, os.O_WRONLY), (1, os.O_RDONLY), (2, os.O_WRONLY))


def prepare() -> None:
    """Put failing files in the place of closed streams. What a stream cannot encode is written by its number."""
    for number, flags in _STAND_INS:
        if _is_closed(number):
            os.dup2(os.open(os.devnull, flags), number)  # the lowest free number, so mostly `number` itself
            os.set_inheritable(number, True)
    sys.stdin = sys.stdin or _opened(0, "r")
    sys.stdout = sys.stdout or _opened(1, "w")
    sys.stderr = sys.stderr or _opened(2, "w")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def guarded(program: Callable[[], None]) -> None:
    """Run the program and write out what it has written; an output that fails is one line and an exit code."""
    try:
        try:
            program()
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        _give_up(ANSWER_IS_NO)  # the reader has seen enough; as typer ends where a write fails like this
    except OSError as error:
        what = error.filename or "the output cannot be written"
        with contextlib.suppress(OSError):
            print(f"vgpu: {what}: {error.strerror or error}", file=sys.stderr, flush=True)  # noqa: T201 - an error
        _give_up(OUTPUT_FAILED)


def _give_up(code: int) -> None:
    """End the program; what is not written yet gets lost, where the interpreter would fail again at its end."""
    lost = os.open(os.devnull, os.O_WRONLY)
    for number in (1, 2):
        os.dup2(lost, number)
    sys.exit(code)


def _is_closed(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return True
    return False


def _opened(number: int, mode: str) -> TextIO:
    return open(number, mode, encoding="utf-8", closefd=False)  # type: ignore[return-value]
