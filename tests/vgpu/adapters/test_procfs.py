"""Names, cgroups and mapped files of processes, from the real /proc and from hostile files in its place."""

import gc
import mmap
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from vgpu.adapters import procfs
from vgpu.adapters.procfs import FileId, HostProcess, Procfs


def test_a_running_process_and_one_that_has_ended() -> None:
    command, cgroups = (Path(f"/proc/self/{name}").read_text() for name in ("comm", "cgroup"))
    assert Procfs().process(os.getpid()) == HostProcess(command.rstrip("\n"), cgroups)
    child = subprocess.Popen(["true"])
    child.wait()
    assert Procfs().process(child.pid) is None


@pytest.fixture
def made(tmp_path: Path) -> Path:
    (tmp_path / "7").mkdir()
    (tmp_path / "7/comm").write_bytes(b"main\n")
    (tmp_path / "7/cgroup").write_bytes(b"0::/\n")
    return tmp_path


def test_a_command_is_cut_and_has_printable_characters_only(made: Path) -> None:
    (made / "7/comm").write_bytes("\x1b[2J\n\u202eé".encode() + b"\xff" + b"x" * 9000)
    found = Procfs(made).process(7)
    assert found is not None
    assert found.command.isprintable()
    assert found.command.startswith("?[2J")
    assert len(found.command) <= 16


def test_cgroups_are_bounded_and_any_bytes_are_read(made: Path) -> None:
    (made / "7/cgroup").write_bytes(b"0::/\xff\x00\n")
    found = Procfs(made).process(7)
    assert found is not None
    assert found.cgroups.startswith("0::/")
    (made / "7/cgroup").write_bytes(b"0::/" + b"a" * (1 << 17))
    assert Procfs(made).process(7) is None


@pytest.mark.heavy
def test_no_descriptor_stays_open(made: Path) -> None:
    gc.collect()  # what another test left open is not to be closed meanwhile
    before = len(list(Path("/proc/self/fd").iterdir()))
    for pid in (7, 8) * 5:
        Procfs(made).process(pid)
    assert len(list(Path("/proc/self/fd").iterdir())) == before


@contextmanager
def mapping(path: Path, flags: int, access: int) -> Iterator[int]:
    """A process that has mapped a file; yields its pid."""
    program = f"import mmap, sys; f = open({str(path)!r}, 'r+b'); m = mmap.mmap(f.fileno(), 0, {flags}, {access})"
    with subprocess.Popen(
        [sys.executable, "-c", f"{program}\nprint(flush=True)\nsys.stdin.read()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout
        process.stdout.readline()
        yield process.pid
        assert process.stdin
        process.stdin.close()


@pytest.mark.parametrize(
    ("flags", "access", "is_seen"),
    [
        (mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC, True),
        (mmap.MAP_SHARED, mmap.PROT_READ, True),
        (mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE, True),
        (mmap.MAP_PRIVATE, mmap.PROT_READ, False),  # data: nothing runs in it, and nothing is shared by it
    ],
)
def test_programs_and_shared_memory_of_a_process_are_known_by_identity(
    tmp_path: Path, flags: int, access: int, *, is_seen: bool
) -> None:
    file, other = tmp_path / "file", tmp_path / "other"
    file.write_bytes(b"x" * 4096)
    other.write_bytes(b"x" * 4096)
    with mapping(file, flags, access) as pid:
        file.rename(tmp_path / "renamed \n 7f00-7f01 r-xp 00000000 00:00 1")  # the name is no matter
        seen = Procfs().mapped([pid])[pid]
        assert (procfs.file_id(next(tmp_path.glob("renamed*"))) in seen) is is_seen
        assert procfs.file_id(other) not in seen
        assert FileId(0, 1) not in seen


def test_a_process_that_has_ended_has_no_mappings_and_one_that_cannot_be_read_has_none(made: Path) -> None:
    with subprocess.Popen(["true"]) as child:
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # a zombie
        assert Procfs().mapped([child.pid]) == {}
    assert Procfs().mapped([child.pid]) == {}
    os.mkfifo(made / "7/maps")  # reading it waits for a writer
    assert Procfs(made, timeout_s=0.05).mapped([7]) == {7: frozenset()}
    (made / "7/maps").open("wb").close()


def can_read_process_1() -> bool:
    try:
        return bool(Path("/proc/1/maps").read_bytes())
    except OSError:
        return False


def test_mappings_that_may_not_be_read_are_none(made: Path) -> None:
    (made / "7/maps").mkdir()  # reading it is an error
    assert Procfs(made).mapped([7]) == {7: frozenset()}


def test_a_file_system_on_which_mappings_cannot_be_compared_is_known(tmp_path: Path, made: Path) -> None:
    file = tmp_path / "library"
    file.write_bytes(b"x")
    assert Procfs().tells_files_apart(file) is can_read_process_1()  # root can, but for some sandboxes
    assert not Procfs().tells_files_apart(tmp_path / "absent")
    assert not Procfs(made).tells_files_apart(file)
