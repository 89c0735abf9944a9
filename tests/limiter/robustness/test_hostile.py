"""Limits files and regions with random contents: calls return success or out of memory, and within a bound."""

import json
import random
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.limiter.conftest import MIB, Container
from vgpu.domain.formats import limits, region

OUT_OF_MEMORY = 2
ANSWERS = {0, OUT_OF_MEMORY}
SLOTS_HIGH_AT, LOCK_AT, LOCK_SIZE = 28, 56, 40
TIMEOUT_S = 20

Make = Callable[..., Container]


def write(path: Path, offset: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(offset)
        file.write(data)


def attempts(container: Container) -> list[int]:
    """Results of a new process that allocates 8 MiB, more than the limit, and 1 byte; it must end by itself.

    Where nothing may be allocated, the process has no context either, and that result stands for all three.
    """
    sizes = ("8", "80", "1")
    command = [str(container.world.bin / "gpuprobe"), "alloc", *sizes]
    env = container.world.environment(**{**container.env, "VGPU_LOG": "off"})
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=TIMEOUT_S)
    assert done.returncode in {0, 1}, done
    results = [json.loads(line)["result"] for line in done.stdout.splitlines()]
    return results * len(sizes) if done.returncode else results


def sizes_below(whole: int) -> Iterator[int]:
    """Sizes at which structures begin and end, and some between."""
    chance = random.Random(whole)
    yield from (0, 1, 8, 63, 64, 255, 256, whole // 2, whole - 1)
    yield from (chance.randrange(whole) for _ in range(20))


def test_a_truncated_limits_file_denies_allocations(container: Container) -> None:
    whole = (container.folder / "limits").read_bytes()
    for size in sizes_below(len(whole)):
        (container.folder / "limits").write_bytes(whole[:size])
        assert attempts(container) == [OUT_OF_MEMORY] * 3, size


def test_a_truncated_region_refuses_allocations(container: Container) -> None:
    whole = (container.folder / "region").read_bytes()
    for size in sizes_below(len(whole)):
        (container.folder / "region").write_bytes(whole[:size])
        assert attempts(container) == [OUT_OF_MEMORY] * 3, size


@pytest.mark.parametrize("seed", range(20))
def test_a_flipped_bit_leaves_the_limits_or_denies(container: Container, seed: int) -> None:
    path = container.folder / "limits"
    place = random.Random(seed).randrange(64 + 1600)
    write(path, place, bytes([path.read_bytes()[place] ^ 1 << seed % 8]))
    assert attempts(container) in ([0, OUT_OF_MEMORY, 0], [OUT_OF_MEMORY] * 3)


def test_random_writes_to_the_limits_leave_the_last_valid_ones(container: Container) -> None:
    session = container.session()
    session("start()")
    path, chance = container.folder / "limits", random.Random(11)
    assert session("info()")[2] == 64 * MIB
    for _ in range(200):
        write(path, chance.randrange(limits.SIZE - 8), chance.randbytes(8))
        assert session("info()")[2] == 64 * MIB
        result, pointer = session(f"alloc({2 * MIB})")
        assert result == 0
        session(f"free({pointer})")


@pytest.mark.parametrize("field", ["magic", "version", "size", "slots", "cards"])
def test_a_region_of_another_layout_refuses(container: Container, field: str) -> None:
    offset = {"magic": 0, "version": 8, "size": 12, "slots": 16, "cards": 20}[field]
    write(container.folder / "region", offset, b"\xff\xff\xff\x7f")
    assert attempts(container) == [OUT_OF_MEMORY] * 3


@pytest.mark.parametrize("seed", range(20))
def test_a_region_of_random_bytes_neither_crashes_nor_blocks_a_program(container: Container, seed: int) -> None:
    """Everything after the header is random: the rows of cards, and the slots of processes."""
    chance = random.Random(seed)
    assert attempts(container) == [0, OUT_OF_MEMORY, 0]
    write(container.folder / "region", SLOTS_HIGH_AT, chance.randbytes(4))
    first = chance.choice([256, region.SLOTS_AT])
    write(container.folder / "region", first, chance.randbytes(region.SIZE - first))
    assert set(attempts(container)) <= ANSWERS


@pytest.mark.parametrize("seed", range(20))
def test_a_lock_of_random_bytes_times_out_or_is_taken(container: Container, seed: int) -> None:
    chance = random.Random(seed)
    assert attempts(container) == [0, OUT_OF_MEMORY, 0]
    kept = chance.choice([0, 4, 12, 16])  # keeps the lock's first words valid, so that the later ones matter
    write(container.folder / "region", LOCK_AT + kept, chance.randbytes(LOCK_SIZE - kept))
    assert set(attempts(container)) <= ANSWERS


@pytest.mark.heavy
def test_a_lock_of_another_kind_is_not_touched(container: Container) -> None:
    assert attempts(container) == [0, OUT_OF_MEMORY, 0]
    kind = (container.folder / "region").read_bytes()[LOCK_AT + 16]
    for other in {*range(0, 256, 7)} - {kind}:
        write(container.folder / "region", LOCK_AT + 16, bytes([other]))
        assert attempts(container) == [OUT_OF_MEMORY] * 3, other
    write(container.folder / "region", LOCK_AT + 16, bytes([kind]))
    assert attempts(container) == [0, OUT_OF_MEMORY, 0]


def poke(container: Container, chance: random.Random) -> None:
    """Overwrites eight bytes outside the lock."""
    first = chance.choice([24, LOCK_AT + LOCK_SIZE, 256, region.SLOTS_AT])
    most = {24: LOCK_AT - 8, 256: region.SLOTS_AT}.get(first, region.SLOTS_AT + 2 * region.SLOT_SIZE)
    write(container.folder / "region", chance.randrange(first, most), chance.choice([chance.randbytes(8), b"\xff" * 8]))


@pytest.mark.parametrize("seed", range(4))
def test_random_writes_to_the_region_neither_crash_nor_block_a_program(container: Container, seed: int) -> None:
    session, chance, held = container.session(VGPU_LOG="off"), random.Random(seed), list[int]()
    session("start()")
    session("nvml('nvmlInit')")
    for _ in range(150):
        poke(container, chance)
        begun = time.monotonic()
        result, pointer = session(f"alloc({chance.choice([4096, 2 * MIB, 3 * MIB])})")
        held += [pointer] if result == 0 else []
        shown = session("info()")
        assert result in ANSWERS
        assert 0 <= shown[1] <= shown[2] <= 64 * MIB
        assert session("memory()")["free"] <= 64 * MIB
        if held and chance.random() < 0.6:
            assert session(f"free({held.pop()})") == 0
        assert time.monotonic() - begun < TIMEOUT_S
    assert [session(f"free({pointer})") for pointer in held] == [0] * len(held)


@pytest.mark.heavy
def test_reading_a_random_region_from_outside_is_bounded(container: Container) -> None:
    chance = random.Random(5)
    path = container.folder / "region"
    for _ in range(10):
        write(path, 24, chance.randbytes(region.SIZE - 24))
        seen = container.region()
        assert len(seen.cards) <= region.MAX_CARDS
        assert len(seen.processes) <= region.MAX_PROCESSES


def test_a_process_recovers_after_its_region_is_restored(container: Container) -> None:
    session = container.session(VGPU_LOG="off")
    session("start()")
    path = container.folder / "region"
    assert session(f"alloc({2 * MIB})")[0] == 0
    good = path.read_bytes()
    write(path, LOCK_AT + 16, b"\x55")
    assert session(f"alloc({4 * MIB})")[0] == OUT_OF_MEMORY
    write(path, 0, good)
    assert session(f"alloc({4 * MIB})")[0] == 0
