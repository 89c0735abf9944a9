"""The limiter: a library in the user's processes that enforces limits of GPU memory and time, and the ways to load it.

`limiter.preload(...)` limits the process that calls it, `limiter.environment(...)` a command that is started next. Both
are entry points of users' programs, so this module reads the clock and the environment. The library itself, in C, is in
`src`; `limiter.build` compiles it.
"""

import contextlib
import os
import secrets
import time
from collections.abc import Iterator, Mapping, Sequence

from limiter import interpose, launch
from limiter.host import Host
from limiter.installation import ARBITER, LIBRARY, LimiterError, arbiter_path, library_path

__all__ = [
    "ARBITER",
    "LIBRARY",
    "Host",
    "LimiterError",
    "arbiter_path",
    "environment",
    "library_path",
    "preload",
    "this_host",
]


def this_host() -> Host:
    """Return the time and randomness of this machine."""
    return Host(time.monotonic_ns, time.sleep, lambda: secrets.token_hex(4))


def preload(
    memory: str | None = None,
    cores: int | None = None,
    policy: str | None = None,
    memory_policy: str = "refuse",
    priority: int = 0,
) -> None:
    """Limit this process, and the children that it starts from now on.

    Call it before anything loads CUDA: before `import torch`, or at least before torch's first CUDA call. A child may
    call it again with the same arguments, as the workers of torch.multiprocessing do that run the script's first lines.

    Args:
        memory: on each card, as text: `4GiB`, `4096` (MiB); `uuid=4GiB,uuid=2GiB` where they differ; None: no limit.
        cores: percent of each card's time; None: no time is set aside.
        policy: `fixed`: never more than `cores`; `burst`: `cores` are guaranteed, idle time may be used; `best-effort`:
            idle time only. None: `fixed` where `cores` are given, else `burst`.
        memory_policy: for an allocation within the limit while the card is full: `refuse` it, or `spill` it into
            managed memory.
        priority: 0 to 100; of two programs that wait for a card's time, the one with the higher priority goes first.

    Raises:
        LimiterError: CUDA is loaded already, or other limits are in force already.
        ValueError: an argument cannot be read, or none of memory, cores and policy is given.
    """
    interpose.preload(launch.parse(memory, cores, policy, memory_policy, priority), os.environ, this_host())


@contextlib.contextmanager
def environment(
    memory: str | None,
    cores: int | None,
    policy: str | None,
    base_env: Mapping[str, str],
    *,
    memory_policy: str = "refuse",
    priority: int = 0,
    command: Sequence[str] = (),
) -> Iterator[dict[str, str]]:
    """Yield the environment in which a command runs under limits; leave the context when the command has ended.

    The limits are those of `preload`, `base_env` is the environment to add to, and `command` is shown by `vgpu top`.
    Raises ValueError and LimiterError.
    """
    wanted = launch.parse(memory, cores, policy, memory_policy, priority)
    with launch.environment(wanted, base_env, this_host(), command) as env:
        yield env
