"""A checkpointed process keeps its charge, although it holds nothing on the card meanwhile."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from simgpu import state_directory
from simgpu.session import ProbeSession
from simgpu.world import World
from tests.limiter.conftest import MIB, Container

OUT_OF_MEMORY, NOT_SUPPORTED = 2, 801
CONTEXT_MIB = 10


@pytest.fixture
def container(make_world: Callable[..., World], make_container: Callable[..., Container]) -> Container:
    cards = tuple(replace(card, context_mib=CONTEXT_MIB) for card in state_directory.make_cards(1))
    return replace(make_container("100MiB"), world=make_world(cards))


@pytest.fixture
def two(container: Container) -> tuple[ProbeSession, ProbeSession]:
    """A process that holds 60 MiB and its context, and another with its context."""
    first, second = container.session(), container.session()
    assert first("start()") == second("start()") == 0
    assert first(f"alloc({(60) * MIB})")[0] == 0
    return first, second


def call(process: ProbeSession, step: str, pid: str = "os.getpid()") -> int:
    return int(process(f"int(cuda.cuCheckpointProcess{step}({pid}, None))"))


def test_a_checkpointed_process_stays_charged(container: Container, two: tuple[ProbeSession, ProbeSession]) -> None:
    first, second = two
    assert [call(first, step) for step in ("Lock", "Checkpoint")] == [0, 0]
    assert container.world.mib_used() == CONTEXT_MIB
    for size in (40, 60, 80):
        assert second(f"alloc({size * MIB})")[0] == OUT_OF_MEMORY
    assert second("info()")[1] == 20 * MIB
    assert first("info()")[1] == 20 * MIB
    assert second(f"alloc({20 * MIB})")[0] == 0
    assert [call(first, step) for step in ("Restore", "Unlock")] == [0, 0]
    assert container.world.mib_used() == container.used_mib() == 100


def test_memory_is_measured_again_after_the_unlock(two: tuple[ProbeSession, ProbeSession]) -> None:
    first, second = two
    assert [call(first, step) for step in ("Lock", "Checkpoint", "Restore", "Unlock")] == [0] * 4
    first("cuda.cuDevicePrimaryCtxReset_v2(0)")
    assert second(f"alloc({90 * MIB})")[0] == 0


def test_a_checkpointed_process_that_is_killed_is_charged_no_longer(two: tuple[ProbeSession, ProbeSession]) -> None:
    first, second = two
    assert [call(first, step) for step in ("Lock", "Checkpoint")] == [0, 0]
    first.kill()
    assert second(f"alloc({90 * MIB})")[0] == 0


def test_a_process_without_an_account_is_refused(two: tuple[ProbeSession, ProbeSession]) -> None:
    """A restored one would take memory that is charged nowhere."""
    first, _ = two
    assert call(first, "Checkpoint", "1") == NOT_SUPPORTED
    assert call(first, "Restore", "1") == OUT_OF_MEMORY


def test_a_restore_on_another_card_is_refused(two: tuple[ProbeSession, ProbeSession]) -> None:
    first, _ = two
    assert [call(first, step) for step in ("Lock", "Checkpoint")] == [0, 0]
    pairs = "ctypes.cast((ctypes.c_char * 32)(*[1] * 16, *[2] * 16), ctypes.c_void_p).value"
    arguments = f"(ctypes.c_uint64 * 8)({pairs}, 1)"
    assert first(f"int(cuda.cuCheckpointProcessRestore(os.getpid(), {arguments}))") == NOT_SUPPORTED
    assert [call(first, step) for step in ("Restore", "Unlock")] == [0, 0]
