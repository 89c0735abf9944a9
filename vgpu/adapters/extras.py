"""What to install where a program needs more than `pip install vgpushare` brings."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_OURS: Final = frozenset({"vgpu", "extender", "webhook", "deviceplugin", "limiter"})


@contextmanager
def needed(extra: str, *, by: str) -> Iterator[None]:
    """Import what `by` needs within this context; end the program with one line where the extra is not installed.

    A missing module of our own is a broken installation, not a missing extra: ModuleNotFoundError is raised as it is.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] in _OURS:
            raise
        sys.exit(f"{by}: the Python module {error.name} is missing; install it with: pip install 'vgpushare[{extra}]'")
