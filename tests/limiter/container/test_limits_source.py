"""Changed limits hold within 17 ms, a raised one at the next allocation; existing allocations stay."""

import itertools
import os
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from simgpu.build import ROOT
from simgpu.session import ProbeSession
from tests.limiter.conftest import MIB, Container
from vgpu.adapters import procfs
from vgpu.adapters.procfs import Procfs
from vgpu.domain.formats import limits
from vgpu.domain.formats.limits import ANY_GPU, CardLimit, Limits

OUT_OF_MEMORY = 2
GIB = 1 << 30
ACTIVE_AT, SLOTS_AT, SLOT_SIZE = 16, 64, 1600

Make = Callable[..., Container]


@pytest.fixture
def big(make_container: Make) -> Container:
    return make_container("2GiB")


@pytest.fixture
def session(big: Container) -> ProbeSession:
    running = big.session()
    assert running("start()") == 0
    running("nvml('nvmlInit')")
    return running


def of(memory: int) -> Limits:
    return Limits((CardLimit(ANY_GPU, memory),))


def path(container: Container) -> Path:
    return container.folder / "limits"


def replace(container: Container, data: bytes) -> None:
    """Replaces the file by a rename."""
    fresh = container.folder / "limits.new"
    fresh.write_bytes(data)
    fresh.replace(path(container))
    time.sleep(limits.NOTICED_S)


def patch(container: Container, *writes: tuple[int, bytes]) -> None:
    with path(container).open("r+b") as file:
        for offset, data in writes:
            file.seek(offset)
            file.write(data)
            file.flush()
    time.sleep(limits.NOTICED_S)


def total(session: ProbeSession) -> int:
    """Total memory by CUDA, after a check that NVML agrees and free memory is not negative."""
    result, free, size = session("info()")
    shown = session("memory()")
    assert result == 0
    assert (shown["total"], shown["free"]) == (size, free)
    assert 0 <= free <= size
    return int(size)


def test_the_limit_may_be_raised_and_lowered(big: Container, session: ProbeSession) -> None:
    """Limits of 2, 4 and 1 GiB: the program keeps its memory, and allocations over the limit are refused."""
    first = session(f"alloc({3 * GIB // 2})")[1]
    assert session(f"alloc({GIB})")[0] == OUT_OF_MEMORY
    big.limit(of(4 * GIB))
    result, second = session(f"alloc({GIB})")
    assert (result, total(session)) == (0, 4 * GIB)
    big.limit(of(GIB))
    assert (total(session), session("info()")[1]) == (GIB, 0)
    assert session(f"alloc({2 * MIB})")[0] == OUT_OF_MEMORY
    assert [session(f"fill({pointer}, {GIB})") for pointer in (first, second)] == [0, 0]
    assert session(f"free({first})") == 0
    assert session(f"alloc({2 * MIB})")[0] == OUT_OF_MEMORY
    assert session(f"free({second})") == 0
    assert session(f"alloc({GIB})")[0] == 0
    assert session("info()") == [0, 0, GIB]


@pytest.mark.parametrize("function", ["cuMemAllocManaged", "cuMemAllocAsync"])
def test_a_new_limit_holds_for_every_kind_of_memory(big: Container, session: ProbeSession, function: str) -> None:
    assert session(f"alloc({64 * MIB}, '{function}')")[0] == 0
    big.limit(of(64 * MIB))
    assert session(f"alloc({64 * MIB}, '{function}')")[0] == OUT_OF_MEMORY
    big.limit(of(128 * MIB))
    assert session(f"alloc({64 * MIB}, '{function}')")[0] == 0


def test_a_card_removed_from_the_limits_is_denied(big: Container, session: ProbeSession) -> None:
    assert session(f"alloc({2 * MIB})")[0] == 0
    big.limit(Limits((CardLimit(big.world.cards[1].uuid, GIB),)))
    assert session(f"alloc({2 * MIB})")[0] == OUT_OF_MEMORY
    assert total(session) == 0


def test_a_replaced_limits_file_is_read(big: Container, session: ProbeSession) -> None:
    """Its sequence numbers start again: files are not distinguished by the sequence number alone."""
    assert total(session) == 2 * GIB
    replace(big, limits.encode(of(GIB)))
    assert total(session) == GIB
    big.limit(of(3 * GIB))
    assert total(session) == 3 * GIB
    replace(big, limits.encode(of(4 * GIB)))
    assert total(session) == 4 * GIB


def test_a_file_rewritten_with_the_same_sequence_number_is_read(big: Container, session: ProbeSession) -> None:
    """The sequence number stays, the limits change."""
    assert total(session) == 2 * GIB
    patch(big, (0, limits.encode(of(GIB))))
    assert total(session) == GIB


def test_a_decreasing_sequence_number_is_accepted(big: Container, session: ProbeSession) -> None:
    for memory in (3 * GIB, 4 * GIB, 5 * GIB):
        big.limit(of(memory))
    assert total(session) == 5 * GIB
    patch(big, (0, limits.encode(of(GIB))))
    assert total(session) == GIB


def test_removing_the_file_leaves_the_last_valid_limits(big: Container, session: ProbeSession) -> None:
    path(big).unlink()
    time.sleep(limits.NOTICED_S)
    assert total(session) == 2 * GIB
    replace(big, limits.encode(of(GIB)))
    assert total(session) == GIB


@pytest.mark.parametrize("broken", [b"", b"\xff" * limits.SIZE, limits.encode(of(GIB))[:-1], bytes(limits.SIZE)])
def test_a_replacement_that_is_no_limits_file_is_ignored(big: Container, session: ProbeSession, broken: bytes) -> None:
    replace(big, broken)
    assert total(session) == 2 * GIB
    replace(big, limits.encode(of(GIB)))
    assert total(session) == GIB


def test_a_fifo_in_place_of_the_file_blocks_no_program(big: Container, session: ProbeSession) -> None:
    good = path(big).read_bytes()
    os.mkfifo(big.folder / "fifo")
    (big.folder / "fifo").replace(path(big))
    time.sleep(limits.NOTICED_S)
    assert total(session) == 2 * GIB
    assert big.session()("start()") == OUT_OF_MEMORY
    replace(big, good)
    assert total(session) == 2 * GIB


def test_the_node_sees_which_file_a_program_follows(big: Container, session: ProbeSession) -> None:
    """By a mapping of it, which procfs.mapped reads from outside."""
    process = session("os.getpid()")
    for _ in range(2):
        assert procfs.file_id(path(big)) in Procfs().mapped([process])[process]
        replace(big, limits.encode(of(GIB)))
        assert total(session) == GIB


def test_a_raised_limit_holds_at_the_next_allocation(big: Container, session: ProbeSession) -> None:
    assert session(f"alloc({2 * GIB + MIB})")[0] == OUT_OF_MEMORY
    again = f"[open({str(path(big))!r}, 'r+b').write({{!r}}), alloc({2 * GIB + MIB})[0]]"
    assert session(again.format(limits.encode(of(3 * GIB))))[1] == 0


def test_truncating_the_file_leaves_the_last_valid_limits(big: Container, session: ProbeSession) -> None:
    assert total(session) == 2 * GIB
    path(big).write_bytes(b"")
    assert total(session) == 2 * GIB
    path(big).write_bytes(limits.encode(of(GIB)))
    time.sleep(limits.NOTICED_S)
    assert total(session) == GIB


@pytest.mark.heavy
def test_a_program_that_reads_a_file_while_it_is_truncated_goes_on(big: Container, session: ProbeSession) -> None:
    """As `cp` and an editor do: they truncate the file, and write it again."""
    session(f"globals().update(good=open({str(path(big))!r}, 'rb').read())")
    truncated = f"os.truncate({str(path(big))!r}, 0) or info()[2]"
    written = f"open({str(path(big))!r}, 'wb').write(good) and info()[2]"
    assert set(session(f"[found for _ in range(3000) for found in ({truncated}, {written})]")) == {2 * GIB}


def test_a_slot_holds_once_the_index_is_flipped(big: Container, session: ProbeSession) -> None:
    slot, flip = limits.rewrite(path(big).read_bytes(), of(GIB))
    patch(big, slot)
    assert total(session) == 2 * GIB
    patch(big, flip)
    assert total(session) == GIB


def test_a_torn_current_slot_leaves_the_last_valid_limits(big: Container, session: ProbeSession) -> None:
    big.limit(of(GIB))
    assert total(session) == GIB
    active = struct.unpack_from("<I", path(big).read_bytes(), ACTIVE_AT)[0]
    patch(big, (SLOTS_AT + active * SLOT_SIZE, b"\xff" * 20))
    assert total(session) == GIB
    big.limit(of(3 * GIB))
    assert total(session) == 3 * GIB


def test_limits_unreadable_at_the_start_are_read_later(big: Container) -> None:
    good = path(big).read_bytes()
    patch(big, (0, bytes(limits.SIZE)))
    session = big.session()
    assert session("start()") == OUT_OF_MEMORY
    patch(big, (0, good))
    assert session("start()") == 0
    assert session(f"alloc({2 * MIB})")[0] == 0


def test_the_path_outlives_changes_of_the_environment(big: Container, session: ProbeSession) -> None:
    """Programs that set their process title overwrite the environment."""
    session("globals().update(find=ctypes.CDLL(None).getenv) or setattr(find, 'restype', ctypes.c_void_p)")
    session("ctypes.memset(find(b'VGPU_LIMITS_FILE'), ord('x'), len(os.environ['VGPU_LIMITS_FILE']))")
    replace(big, limits.encode(of(GIB)))
    assert total(session) == GIB


def test_a_reader_never_sees_a_mixture_of_two_limits(big: Container, session: ProbeSession) -> None:
    """The file is rewritten continuously; both cards always have equal limits."""
    stop = threading.Event()
    gpus = [card.uuid for card in big.world.cards]
    sizes = {n * 64 * MIB for n in range(1, 9)}

    def write(size: int) -> None:
        big.limit(Limits(tuple(CardLimit(gpu, size) for gpu in gpus)))

    def rewrite() -> None:
        for size in itertools.cycle(sorted(sizes)):
            if stop.is_set():
                return
            write(size)

    write(min(sizes))
    writer = threading.Thread(target=rewrite)
    writer.start()
    try:
        seen = {session("info()")[2] for _ in range(300)}
        until = time.monotonic() + 20
        while len(seen) == 1 and time.monotonic() < until:  # the writer may not have run yet
            seen.add(session("info()")[2])
    finally:
        stop.set()
        writer.join()
    assert seen <= sizes
    assert len(seen) > 1


LOOP = """
import sys
from tests.cuda_calls import session
session.start()
held = []
for line in sys.stdin:
    while held:
        session.free(held.pop())
    while (made := session.alloc(64 << 20))[0] == 0:
        held.append(made[1])
    print(len(held), made[0], flush=True)
"""


def test_a_running_job_follows_each_change(big: Container) -> None:
    job = big.world.start(sys.executable, "-c", LOOP, **big.env, PYTHONPATH=str(ROOT), VGPU_LOG="off")
    assert job.stdin
    assert job.stdout
    for gib in (2, 4, 1, 3):
        big.limit(of(gib * GIB))
        job.stdin.write("go\n")
        job.stdin.flush()
        assert job.stdout.readline() == f"{gib * 16} {OUT_OF_MEMORY}\n"
    assert job.poll() is None


@pytest.mark.heavy
def test_limits_written_by_the_device_plugin_are_read(big: Container, session: ProbeSession, tmp_path: Path) -> None:
    """A test of the whole path from the device plugin's writer to the library."""
    code = """
import sys
from pathlib import Path
from vgpu.node.containers.state_files import StateFiles
from vgpu.domain.formats.limits import ANY_GPU, CardLimit, Limits
files = StateFiles(Path(sys.argv[1]))
(files.allocations / "a").symlink_to(sys.argv[2])
files.write_limits("a", Limits((CardLimit(ANY_GPU, int(sys.argv[3])),)))
"""
    subprocess.run([sys.executable, "-c", code, tmp_path / "plugin", big.folder, str(GIB)], cwd=ROOT, check=True)
    assert total(session) == GIB
