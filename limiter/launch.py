"""Limits for a program that is about to be started: the files that say them, and the environment that names those."""

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from limiter import LimiterError, library_path
from vgpu import limits, quantity, region
from vgpu.limits import ANY_GPU, MAX_CORES, CardLimit, Limits
from vgpu.policy import ComputePolicy, MemoryPolicy

LIMITS_ENV: Final = "VGPU_LIMITS_FILE"
REGION_ENV: Final = "VGPU_REGION_FILE"
PRELOAD_ENV: Final = "LD_PRELOAD"
CONTAINER_LIMITS: Final = Path("/run/vgpu/limits")

_SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - a private directory is made in it


def parse(memory: str | None, cores: int | None, policy: str, memory_policy: str = MemoryPolicy.REFUSE) -> Limits:
    """Read limits as people write them (`limiter.preload` says how). Raises ValueError."""
    percent = MAX_CORES if cores is None else cores
    cards = tuple(_card(entry.strip(), percent) for entry in (memory or "").split(",") if memory)
    parsed = Limits(
        cards or (CardLimit(ANY_GPU, None, percent),), ComputePolicy(policy), memory_policy=MemoryPolicy(memory_policy)
    )
    limits.encode(parsed)  # refuses what is out of range
    return parsed


@contextlib.contextmanager
def environment(
    memory: str | None,
    cores: int | None,
    policy: str,
    base_env: Mapping[str, str],
    *,
    memory_policy: str = MemoryPolicy.REFUSE,
) -> Iterator[dict[str, str]]:
    """Yield the environment in which a command runs under limits; all its processes share one account.

    The files behind it are removed on leaving: leave when the command has ended. Raises ValueError and LimiterError.
    """
    wanted = parse(memory, cores, policy, memory_policy)
    refuse_limited(base_env)
    folder = write_files(wanted)
    try:
        yield {**base_env, **variables(folder, base_env)}
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def refuse_limited(env: Mapping[str, str]) -> None:
    """Raise LimiterError where limits are in force already: new ones could only loosen them, or would be ignored."""
    if CONTAINER_LIMITS.exists():
        raise LimiterError(f"this container is limited already, by {CONTAINER_LIMITS}")
    if LIMITS_ENV in env:
        raise LimiterError(f"this process is limited already, by {env[LIMITS_ENV]}")


def write_files(wanted: Limits) -> Path:
    """Make a private directory with the files `limits` and `region`, for the caller to remove."""
    shared = _SHARED_MEMORY if os.access(_SHARED_MEMORY, os.W_OK) else None
    folder = Path(tempfile.mkdtemp(prefix="vgpu-", dir=shared))
    (folder / "limits").write_bytes(limits.encode(wanted))
    with (folder / "region").open("wb") as file:
        file.write(region.new())
        file.truncate(region.SIZE)
    return folder


def variables(folder: Path, env: Mapping[str, str]) -> dict[str, str]:
    """Return what to set so that a program started with `env` loads the limiter and finds the files of `folder`."""
    library = str(library_path())
    if set(library) & {" ", ":"}:
        raise LimiterError(f"the loader takes no spaces and colons in the path of a preloaded library: {library}")
    before = env.get(PRELOAD_ENV, "")
    return {
        LIMITS_ENV: str(folder / "limits"),
        REGION_ENV: str(folder / "region"),
        PRELOAD_ENV: f"{before}:{library}" if before else library,
    }


def _card(entry: str, cores: int) -> CardLimit:
    gpu, _, size = entry.rpartition("=")
    memory = quantity.size_bytes(size)
    if memory is None:
        raise ValueError(f"not an amount of memory: {size!r}; write `8GiB`, or MiB as a plain number")
    return CardLimit(gpu.strip() or ANY_GPU, memory, cores)
