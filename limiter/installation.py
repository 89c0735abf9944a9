"""Where the compiled files are: beside this package's modules."""

import mmap
from importlib import resources
from pathlib import Path
from typing import Final

from vgpu.domain.errors import VgpuError

LIBRARY: Final = "libvgpushare.so"
ARBITER: Final = "vgpu-arbiter"


class LimiterError(VgpuError):
    """The limiter cannot be loaded; the message says why and what to do."""


def library_path() -> Path:
    """Return the path of the shared library. Raises LimiterError where it was not built."""
    return installed(LIBRARY)


def refuse_unloadable(library: Path) -> None:
    """Raise LimiterError where the loader cannot map a library: it would run a program without limits, silently."""
    try:
        with library.open("rb") as file:
            mmap.mmap(file.fileno(), 0, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC).close()
    except (OSError, ValueError) as error:
        raise LimiterError(
            f"{library} cannot be mapped as a program ({error}): install it on a file system without noexec"
        ) from error


def arbiter_path() -> Path:
    """Return the path of the arbiter's program. Raises LimiterError where it was not built."""
    return installed(ARBITER)


def installed(name: str) -> Path:
    """Return the path of a compiled file. Raises LimiterError where it was not built."""
    path = Path(str(resources.files("limiter").joinpath(name)))
    if not path.is_file():
        raise LimiterError(f"{path} is not there: run `python -m limiter.build` in a checkout, or install the wheel")
    return path
