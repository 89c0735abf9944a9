"""Opens files whose paths a user gave, which are hostile input: only regular files are read; errors name the file."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from vgpu.domain.errors import MalformedError


@contextmanager
def reading(path: Path) -> Iterator[BinaryIO]:
    """Open a regular file; opening any other kind of file could block.

    Raises MalformedError with the path, also for an OSError or a MalformedError of the statement's body.
    """
    try:
        with _opened(path) as file:
            yield file
    except MalformedError as error:
        raise MalformedError(f"{path}: {error}") from error
    except OSError as error:
        raise MalformedError(f"{path}: {error.strerror or error}") from error


def _opened(path: Path) -> BinaryIO:
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise MalformedError("not a regular file")
    return os.fdopen(handle, "rb")
