"""Names and cgroups of processes, from the real /proc and from hostile files in its place."""

import os
import subprocess
from pathlib import Path

import pytest

from vgpu.adapters.procfs import Process, Procfs


def test_a_running_process_and_one_that_has_ended() -> None:
    command, cgroups = (Path(f"/proc/self/{name}").read_text() for name in ("comm", "cgroup"))
    assert Procfs().process(os.getpid()) == Process(command.rstrip("\n"), cgroups)
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


def test_no_descriptor_stays_open(made: Path) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    for pid in (7, 8) * 5:
        Procfs(made).process(pid)
    assert len(list(Path("/proc/self/fd").iterdir())) == before
