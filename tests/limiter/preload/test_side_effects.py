"""The library has no side effects: the state of a process is equal with and without it."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.limiter.conftest import Build, Container, environment_without_limits

HERE = Path(__file__).parent
EXIT_CODE = 42  # of report.c
MOST_KIB = 1024  # additional address space

Done = subprocess.CompletedProcess[str]


@pytest.fixture(scope="session")
def report(built: Build) -> Path:
    return built("preload/report.c")


def run(container: Container, *command: str | Path, limited: bool, **more: str) -> Done:
    env = environment_without_limits() | container.world.environment() | more
    env |= container.env if limited else {}
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=30)


@pytest.mark.parametrize(
    "command",
    [
        ["/bin/true"],
        ["/bin/sh", "-c", "echo $0 | cat; exit 3"],
        ["/bin/sh", "-c", "kill -TERM $$"],
        ["/bin/bash", "-c", "ulimit -a; trap 'echo bye' EXIT; (exit 4)"],
        ["/bin/bash", "-c", "trap 'echo usr1' USR1; kill -USR1 $$; trap; umask; echo $-; jobs; exit 9"],
        ["/bin/cat", "/nowhere"],
    ],
)
def test_programs_behave_as_without_the_library(container: Container, command: list[str]) -> None:
    native, limited = run(container, *command, limited=False), run(container, *command, limited=True)
    assert (limited.returncode, limited.stdout, limited.stderr) == (native.returncode, native.stdout, native.stderr)


@pytest.mark.parametrize("locale", ["C", "C.UTF-8", "nowhere"])
def test_the_process_state_at_start_is_unchanged(container: Container, report: Path, locale: str) -> None:
    """errno, signals, their masks and stacks, limits, timers, umask, threads, descriptors, environment, libraries."""
    native, limited = (run(container, report, limited=is_limited, LC_ALL=locale) for is_limited in (False, True))
    assert (limited.returncode, limited.stdout) == (EXIT_CODE, native.stdout)
    match = re.fullmatch(r"ours (\d+) KiB\n", limited.stderr)
    assert match
    assert 0 < int(match[1]) < MOST_KIB


def test_a_cuda_program_gets_nvml_and_no_other_library(container: Container, report: Path) -> None:
    """NVML is opened with the first context, for measurements, and keeps one descriptor open."""
    native, limited = (
        run(container, report, "cuda", limited=is_limited).stdout.splitlines() for is_limited in (False, True)
    )
    more = [line for line in limited if line not in native]
    assert [line for line in native if line not in limited] == [line for line in native if "descriptors" in line]
    assert [re.sub(r"\d+", "N", line) for line in more] == ["descriptors: N", "library /libnvidia-ml.so.N"]
    assert "cuda: 0" in native
    assert "cuda: 0" in limited


SIGNALS = """
import faulthandler, os, signal, sys, threading
seen = []
for number in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGCHLD, signal.SIGALRM):
    signal.signal(number, lambda number, frame: seen.append(number))
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR2})
signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
if len(sys.argv) > 1:
    from tests.cuda_calls import session
    session.start()
    for _ in range(300):
        result, pointer = session.alloc(1 << 20)
        session.free(pointer)
        session.info()
os.kill(os.getpid(), signal.SIGUSR1), os.kill(os.getpid(), signal.SIGUSR2)
if os.fork() == 0: os._exit(5)
print(os.wait()[1] >> 8, {signal.SIGUSR1, signal.SIGCHLD} <= set(seen), signal.SIGUSR2 in seen, signal.sigpending())
print(signal.SIGALRM in seen or signal.sigtimedwait({signal.SIGALRM}, 1) is not None, threading.active_count())
"""


@pytest.mark.parametrize("cuda", [(), ("cuda",)])
def test_signals_are_delivered_as_without_the_library(container: Container, cuda: tuple[str, ...]) -> None:
    more = {"PYTHONPATH": str(HERE.parents[2])}
    done = [
        run(container, sys.executable, "-c", SIGNALS, *cuda, limited=is_limited, **more) for is_limited in (False, True)
    ]
    assert [process.stdout for process in done] == ["5 True False {<Signals.SIGUSR2: 12>}\nTrue 1\n"] * 2
    assert [process.stderr for process in done] == ["", ""]


def test_a_program_without_cuda_takes_no_slot(container: Container) -> None:
    run(container, "/bin/true", limited=True)
    thread = "import ctypes, threading; threading.Thread(target=print).start()"
    assert run(container, sys.executable, "-c", thread, limited=True).returncode == 0
    assert (container.region().processes, container.region().cards) == ((), ())
