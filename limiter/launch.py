"""Limits for a program that is about to be started: the files that hold them, and the environment that names these."""

import contextlib
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, SupportsIndex

from limiter import local_arbiter, local_keeper, local_state
from limiter.host import Host
from limiter.installation import LimiterError, library_path, refuse_unloadable
from limiter.local_state import LocalAllocation
from vgpu.domain import quantity
from vgpu.domain.asks.policy import MAX_PRIORITY, ComputePolicy, MemoryPolicy, default_compute_policy
from vgpu.domain.formats import limits
from vgpu.domain.formats.limits import ANY_GPU, CardLimit, Limits
from vgpu.domain.identifiers import CardUuid

LIMITS_ENV: Final = "VGPU_LIMITS_FILE"
REGION_ENV: Final = "VGPU_REGION_FILE"
SPACE_ENV: Final = "VGPU_SPACE_DIRECTORY"
ARBITER_ENV: Final = "VGPU_ARBITER_SOCKET"
PRELOAD_ENV: Final = "LD_PRELOAD"
ASKED_ENV: Final = (
    "VGPU_LIMITS_ASKED"  # the limits that a program was started with; `vgpu set` may change those in force
)
CONTAINER_LIMITS: Final = Path("/run/vgpu/limits")
CONTAINER_LIBRARY: Final = Path("/usr/local/vgpu/libvgpushare.so")  # stays visible where a sandbox hides /run


def parse(
    memory: str | None,
    cores: int | None,
    policy: str | None,
    memory_policy: str = MemoryPolicy.REFUSE,
    priority: int = 0,
) -> Limits:
    """Read limits as people write them (`limiter.preload` documents the form). Raises ValueError."""
    if memory is None and cores is None and policy is None:
        raise ValueError("nothing to limit; give memory, cores or policy")
    _refuse_numbers(memory)
    _refuse_out_of_range(cores, priority)
    _refuse_unknown("policy", policy or ComputePolicy.FIXED, tuple(ComputePolicy))
    _refuse_unknown("memory_policy", memory_policy, tuple(MemoryPolicy))
    chosen = ComputePolicy(policy) if policy else default_compute_policy(cores)
    if chosen is ComputePolicy.FIXED and not cores:
        raise ValueError("the compute policy fixed limits the time to a share; give the cores too, in percent")
    if memory is not None and not memory.strip():
        raise ValueError("the memory is empty; give an amount, such as 8Gi, or leave it out")
    cards = tuple(_card(entry.strip(), cores or 0) for entry in memory.split(",")) if memory is not None else ()
    parsed = Limits(cards or (CardLimit(ANY_GPU, None, cores or 0),), chosen, priority, MemoryPolicy(memory_policy))
    limits.encode(parsed)  # raises ValueError for what is out of range
    return parsed


@contextlib.contextmanager
def environment(
    wanted: Limits, base_env: Mapping[str, str], host: Host, command: Sequence[str] = ()
) -> Iterator[dict[str, str]]:
    """Yield the environment in which a command runs under limits; all its processes share one account.

    Leave the context when the command has ended. The files are removed then, or when the last process has ended that
    the command left behind. Raises LimiterError.
    """
    refuse_limited(base_env)
    allocation = allocate(wanted, base_env, command, host)
    os.set_inheritable(allocation.owner, True)  # the command keeps its limits where this process is killed
    try:
        yield {**base_env, **variables(allocation.folder, base_env), ASKED_ENV: describe(wanted)}
    finally:
        local_keeper.release(allocation)


def allocate(wanted: Limits, env: Mapping[str, str], command: Sequence[str], host: Host) -> LocalAllocation:
    """Create the files of a program that is started with `env`, and have an arbiter serve it. Raises LimiterError."""
    home = local_state.state_directory(env)
    local_state.ensure(home)
    allocation = local_state.add(home, wanted, command, host)
    local_arbiter.await_socket(allocation.folder, host)
    return allocation


def refuse_limited(env: Mapping[str, str]) -> None:
    """Raise LimiterError where limits are in force already: new limits could only loosen them, or would be ignored."""
    if CONTAINER_LIMITS.exists() or CONTAINER_LIBRARY.exists():
        raise LimiterError(f"this container is limited already, by {CONTAINER_LIMITS}")
    if LIMITS_ENV in env:
        raise LimiterError(f"this process is limited already, to {_asked(env)}")


def has_inherited(wanted: Limits, env: Mapping[str, str]) -> bool:
    """Whether this process was started under limits, and these are the ones wanted.

    Raises LimiterError where it was started under others.
    """
    if LIMITS_ENV in env and env.get(ASKED_ENV) == describe(wanted) and not CONTAINER_LIMITS.exists():
        return True
    try:
        refuse_limited(env)
    except LimiterError as error:
        raise LimiterError(f"{error}; it cannot be limited to {describe(wanted)}") from None
    return False


def describe(asked: Limits) -> str:
    """Return limits as one line, which is equal for equal limits."""
    cards = ", ".join(f"{_memory(card)} and {card.cores} % of the time of {_gpu(card)}" for card in asked.cards)
    group = f", group {asked.space.group.hex()[:16]}" if asked.space else ""
    return f"{cards} ({asked.compute_policy}, {asked.memory_policy}, priority {asked.priority}{group})"


def write_files(wanted: Limits) -> Path:
    """Create a private directory with an allocation's files, for the caller to remove; no arbiter serves it."""
    folder = Path(tempfile.mkdtemp(prefix="vgpu-", dir=local_state.shared_memory()))
    local_state.write_allocation(folder, wanted)
    return folder


def variables(folder: Path, env: Mapping[str, str]) -> dict[str, str]:
    """Return what to add to `env`, so that a program loads the limiter and finds the files of `folder`."""
    refuse_unloadable(library_path())
    library = str(library_path())
    if set(library) & {" ", ":"}:
        raise LimiterError(f"the loader takes no spaces and colons in the path of a preloaded library: {library}")
    before = env.get(PRELOAD_ENV, "")
    return {
        LIMITS_ENV: str(folder / "limits"),
        REGION_ENV: str(folder / "region"),
        ARBITER_ENV: str(local_state.socket_of(folder)),
        PRELOAD_ENV: f"{before}:{library}" if before else library,
    }


def _refuse_numbers(memory: object) -> None:
    if memory is not None and not isinstance(memory, str):
        raise ValueError(f"memory: must be text, such as {str(memory) + 'Mi'!r}, and not the number {memory!r}")


def _refuse_out_of_range(cores: object, priority: object) -> None:
    if cores is not None and not _is_whole(cores, 1, quantity.FULL_CORES):
        why = f"must be a whole number from 1 to {quantity.FULL_CORES}, percent of a card's time"
        raise ValueError(f"cores: {why}, and not {cores!r}")
    if not _is_whole(priority, 0, MAX_PRIORITY):
        raise ValueError(f"priority: must be a whole number from 0 to {MAX_PRIORITY}, and not {priority!r}")


def _is_whole(number: object, least: int, most: int) -> bool:
    return isinstance(number, SupportsIndex) and not isinstance(number, bool) and least <= number.__index__() <= most


def _refuse_unknown(argument: str, value: str, known: Sequence[str]) -> None:
    if value not in known:
        raise ValueError(f"{argument}: must be one of {', '.join(known)}, and not {value!r}")


def _asked(env: Mapping[str, str]) -> str:
    return env.get(ASKED_ENV) or f"what {env[LIMITS_ENV]} holds"


def _memory(card: CardLimit) -> str:
    return "any memory" if card.memory_bytes is None else f"{card.memory_bytes} bytes"


def _gpu(card: CardLimit) -> str:
    return "each card" if card.gpu == ANY_GPU else card.gpu


def _card(entry: str, cores: int) -> CardLimit:
    gpu, _, size = entry.rpartition("=")
    return CardLimit(CardUuid(gpu.strip()) or ANY_GPU, quantity.limit_bytes(size), cores)
