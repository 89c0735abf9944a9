"""The arbiter as a process: arguments, start and end, priority, log."""

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from limiter import arbiter_path
from limiter.arbitration import ACCEPTED
from tests.arbiter.client import open_connection
from tests.arbiter.conftest import GPU, Node, limits_for, until

pytestmark = pytest.mark.slow


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([arbiter_path(), *arguments], capture_output=True, text=True, check=False, timeout=10)


@pytest.mark.usefixtures("built_arbiter")
@pytest.mark.parametrize(
    "arguments", [(), ("--help",), ("--config",), ("a", "b"), ("--idle-exit", "0", "/"), ("--unknown", "1", "/")]
)
def test_wrong_arguments_print_the_usage(arguments: tuple[str, ...]) -> None:
    done = run(*arguments)
    assert done.returncode == 1
    assert done.stderr.startswith("usage: vgpu-arbiter")


@pytest.mark.usefixtures("built_arbiter")
def test_a_missing_directory_is_named_in_the_error(tmp_path: Path) -> None:
    done = run(str(tmp_path / "none"))
    assert (done.returncode, done.stderr) == (1, f"vgpu-arbiter: {tmp_path}/none: No such file or directory\n")


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_on_a_signal_the_arbiter_ends_and_removes_its_sockets(node: Node, how: signal.Signals) -> None:
    container = node.add()
    client = container.connect()
    assert node.end(how) == (0, "")
    assert client.has_ended()
    assert not container.socket.exists()


def test_a_new_arbiter_takes_over_after_a_kill(node: Node) -> None:
    container = node.add()
    client = container.connect()
    node.end(signal.SIGKILL)
    assert client.has_ended()
    assert container.socket.exists()
    node.start()
    until(lambda: is_open(container.socket))
    assert container.connect().result == ACCEPTED


def is_open(path: Path) -> bool:
    try:
        open_connection(path).close()
    except ConnectionRefusedError:
        return False
    return True


def test_with_idle_exit_the_arbiter_ends_without_containers(idle_node: Node) -> None:
    container = idle_node.add()
    process = idle_node.start("--idle-exit", "1")
    container.connect()
    time.sleep(1.3)
    assert process.poll() is None
    container.folder.rename(idle_node.allocations.parent / "gone")
    assert process.wait(10) == 0


def test_an_idle_arbiter_uses_no_processor_time(node: Node) -> None:
    node.add().connect()
    assert node.process is not None
    path = Path(f"/proc/{node.process.pid}/stat")
    before = path.read_text().split()[13:15]
    time.sleep(1)
    used = sum(map(int, path.read_text().split()[13:15])) - sum(map(int, before))
    assert used <= 2  # ticks of 10 ms


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may set a real-time priority")
def test_the_real_time_priority_ends_after_too_much_processor_time(node: Node) -> None:
    node.add().connect()
    assert node.process is not None
    pid = node.process.pid
    assert os.sched_getscheduler(pid) == os.SCHED_RR or os.getpriority(os.PRIO_PROCESS, pid) == -20
    node.process.send_signal(signal.SIGXCPU)
    until(lambda: os.sched_getscheduler(pid) == os.SCHED_OTHER)
    assert node.add().connect().result == ACCEPTED


def test_unreadable_watermarks_are_logged_and_the_former_ones_stay(idle_node: Node, tmp_path: Path) -> None:
    config = tmp_path / "watermarks"
    config.write_text(f"# high, low\n\n* 90 70\n{GPU} 80 60\n")
    idle_node.start("--config", str(config))
    idle_node.add().connect()
    config.write_text("* 90 70\nGPU-1 80 60\n")
    time.sleep(0.7)
    for wrong in ("* 70 90\n", "* 90\n", "* 101 3\n", "* a b\n", "* 9 5 3\n", "x" * 200):
        config.write_text(wrong)
        time.sleep(0.7)
    code, said = idle_node.end()
    assert code == 0
    assert [line.split(": ")[2].split(" is")[0] for line in said.splitlines()] == ["line 2", *["line 1"] * 6]


def test_a_full_log_pipe_does_not_stop_the_arbiter(idle_node: Node) -> None:
    idle_node.start(VGPU_LOG="debug")
    container = idle_node.add(limits_for(50))
    for _ in range(50):
        container.connect().close()
    assert container.connect().result == ACCEPTED
