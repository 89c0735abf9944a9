"""What processes use of the host, from this machine's /proc and from one made up."""

import os
import subprocess
import sys
from pathlib import Path

from vgpu.adapters import process_use
from vgpu.adapters.process_use import HostUse

WRITES = "import os, sys; os.write(1, bytes(100_000)); sys.stdin.read()"


def test_a_process_and_its_descendants_are_counted() -> None:
    nested = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {WRITES!r}])"
    command = [sys.executable, "-c", nested]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout
        process.stdout.read(100_000)
        found = process_use.of_trees([process.pid])
        process.communicate()
    assert len(found) == 2
    assert sum(use.written_bytes for use in found.values()) >= 100_000
    own = process_use.of_trees([os.getpid()])[os.getpid()]
    assert own.cpu_ns > 0
    assert own.threads >= 1


def test_what_ends_counts_for_nothing_and_what_begins_counts_in_full() -> None:
    before = {1: HostUse(10, 20, 30), 2: HostUse(5, 5, 5)}
    after = {1: HostUse(11, 22, 33, 4, threads=5), 3: HostUse(100, 0, 7, 8, threads=2)}
    assert process_use.between(before, after) == HostUse(101, 2, 10, 12, threads=7)


def test_the_fields_of_a_process(tmp_path: Path) -> None:
    (tmp_path / "7").mkdir()
    numbers = " ".join(map(str, range(3, 53)))  # number 14 is utime, 15 stime, 20 the number of threads
    (tmp_path / "7" / "stat").write_text(f"7 (a) b) {numbers}")
    (tmp_path / "7" / "io").write_text("rchar: 100\nwchar: 20\nsyscr: 1\nsyscw: 1\nread_bytes: 60\nwrite_bytes: 9\n")
    tick_ns = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
    assert process_use.of_trees([7], tmp_path) == {7: HostUse((14 + 15) * tick_ns, 100, 20, 60, threads=20)}


def test_a_process_is_found_by_its_own_pid_namespace() -> None:
    namespace = Path("/proc/self/ns/pid").stat().st_ino
    assert process_use.pids_here({(os.getpid(), namespace), (os.getpid(), 1)}) == {os.getpid()}


def test_what_cannot_be_read_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "7").mkdir()
    (tmp_path / "7" / "stat").write_text("7 (a) b) S 1")
    assert process_use.of_trees([7, 8], tmp_path) == {}
    assert process_use.pids_here({(7, 1)}, tmp_path) == set()
