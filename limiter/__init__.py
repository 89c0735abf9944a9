"""The limiter: a library in the user's processes that holds GPU memory to a limit, and the ways to load it.

`limiter.preload(...)` limits the process that calls it, `limiter.launch` prepares limits for others. The library
itself, in C, lies in `src`; `limiter.build` makes it.
"""

import os
from importlib import resources
from pathlib import Path

from vgpu.errors import VgpuError

LIBRARY = "libvgpushare.so"
ARBITER = "vgpu-arbiter"


class LimiterError(VgpuError):
    """The limiter cannot be put in place; the message says what stands in its way and what to do."""


def library_path() -> Path:
    """Return where the shared library lies. Raises LimiterError where it was not built."""
    return installed(LIBRARY)


def arbiter_path() -> Path:
    """Return where the arbiter's program lies. Raises LimiterError where it was not built."""
    return installed(ARBITER)


def installed(name: str) -> Path:
    """Return the path of a file that the build put beside this module. Raises LimiterError where it is not there."""
    path = Path(str(resources.files(__name__).joinpath(name)))
    if not path.is_file():
        raise LimiterError(f"{path} is not there: run `python -m limiter.build` in a checkout, or install the wheel")
    return path


def preload(
    memory: str | None = None,
    cores: int | None = None,
    policy: str | None = None,
    memory_policy: str = "refuse",
    priority: int = 0,
) -> None:
    """Limit this process, and the children that it starts from now on.

    Must be called before anything loads CUDA (`import torch` is early enough; its first CUDA call is not).

    Args:
        memory: on each card, `4GiB` or MiB as a plain number; `uuid=4GiB,uuid=2GiB` where they differ; None: no limit.
        cores: percent of each card's time; None: none is set aside.
        policy: `fixed`: never more than `cores`; `burst`: `cores` are guaranteed, idle time may be used; `best-effort`:
            idle time only. None: `fixed` where `cores` are given, else `burst`.
        memory_policy: where an allocation is within the limit, but the card is full: `refuse` it, or `spill` it into
            managed memory.
        priority: 0 to 100; of two that wait for a card's time, the higher one goes first.

    Raises:
        LimiterError: CUDA is loaded already, limits are in force already, or there is no NVIDIA driver.
        ValueError: an argument cannot be read.
    """
    from limiter import interpose, launch  # noqa: PLC0415 - both need this module whole

    interpose.preload(launch.parse(memory, cores, policy, memory_policy, priority), os.environ)
