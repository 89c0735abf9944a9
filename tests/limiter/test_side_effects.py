"""A program without CUDA does not notice the library."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.limiter.conftest import Container, environment_without_limits

REPORT = """
import os, signal, sys, threading
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
print(sorted(os.listdir("/proc/self/fd")), status["Threads"], status["Umask"], status["SigCgt"], status["SigBlk"])
print(sorted(name for name in os.environ if not name.startswith(("VGPU_", "LD_PRELOAD"))))
print([line for line in open("/proc/self/maps") if "cuda" in line and "vgpushare" not in line])
"""


def run(container: Container, command: list[str], *, limited: bool) -> subprocess.CompletedProcess[str]:
    env = environment_without_limits() | (container.env if limited else {})
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=30)


@pytest.mark.parametrize(
    "command",
    [
        ["/bin/true"],
        ["/bin/sh", "-c", "echo $0 | cat; exit 3"],
        ["/bin/bash", "-c", "ulimit -n; trap 'echo bye' EXIT; (exit 4)"],
        [sys.executable, "-S", "-c", REPORT],
    ],
)
def test_programs_do_what_they_do_without_it(container: Container, command: list[str]) -> None:
    native, limited = run(container, command, limited=False), run(container, command, limited=True)
    assert (limited.returncode, limited.stdout, limited.stderr) == (native.returncode, native.stdout, native.stderr)


def test_a_static_program_runs(container: Container, tmp_path: Path) -> None:
    busybox = shutil.which("busybox")
    command = [busybox, "echo", "x"] if busybox else ["/sbin/ldconfig", "-p"]
    assert run(container, command, limited=True).returncode == run(container, command, limited=False).returncode
    assert tmp_path.exists()


def test_a_program_without_cuda_takes_no_slot(container: Container) -> None:
    run(container, ["/bin/true"], limited=True)
    assert container.region().processes == ()
