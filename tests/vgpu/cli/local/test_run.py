"""Running a command: exit status, environment and signals."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from vgpu.cli.local import run

SHELL = "/bin/sh"


def test_the_commands_exit_code_is_returned() -> None:
    assert run.run([SHELL, "-c", "exit 3"], os.environ) == 3


def test_a_command_ended_by_a_signal() -> None:
    assert run.run([SHELL, "-c", "kill -TERM $$"], os.environ) == 128 + signal.SIGTERM


def test_the_command_gets_the_given_environment() -> None:
    assert run.run([SHELL, "-c", 'test "$ONLY" = this'], {"ONLY": "this"}) == 0


def test_a_missing_command() -> None:
    with pytest.raises(run.CannotStart, match="command not found") as cannot:
        run.run(["no-such-command-here"], os.environ)
    assert cannot.value.code == 127


def test_a_command_that_is_not_executable(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("no program")
    with pytest.raises(run.CannotStart) as cannot:
        run.run([str(tmp_path / "data")], os.environ)
    assert cannot.value.code == 126


def test_the_command_starts_with_default_signal_handling(capfd: pytest.CaptureFixture[str]) -> None:
    """Python ignores SIGPIPE, and run() blocks the signals that it waits for; the command must inherit neither."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    assert run.run(["cat", "/proc/self/status"], os.environ) == 0
    status = dict(line.split(":", 1) for line in capfd.readouterr().out.splitlines())
    blocked, ignored = int(status["SigBlk"], 16), int(status["SigIgn"], 16)
    assert (blocked, ignored & 0x7FFF_FFFF) == (0, 0)  # signals 32 and 33 belong to glibc
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == before


def test_it_returns_although_the_parent_ignored_sigchld() -> None:
    program = (
        "import os, sys; from vgpu.cli.local import run; sys.exit(run.run(['/bin/sh', '-c', 'exit 4'], os.environ))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN), check=False
    )
    assert ended.returncode == 4


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1])
def test_signals_are_forwarded_to_the_command(number: signal.Signals) -> None:
    script = f"trap 'echo got it; exit 7' {number.name.removeprefix('SIG')}; echo up; while :; do sleep 0.05; done"
    program = (
        f"import os, sys; from vgpu.cli.local import run; sys.exit(run.run(['/bin/sh', '-c', {script!r}], os.environ))"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "up\n"
            process.send_signal(number)
            assert process.stdout.read() == "got it\n"
        except BaseException:
            process.kill()
            raise
    assert process.returncode == 7


def test_one_callback_runs_at_the_start_and_the_other_while_the_command_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "IDLE_PERIOD_S", 0.02)
    calls: list[str] = []
    command = [SHELL, "-c", "sleep 0.5; exit 3"]
    assert run.run(command, os.environ, lambda: calls.append("start"), lambda: calls.append("idle")) == 3
    assert calls[:3] == ["start", "idle", "idle"]
    assert calls.count("start") == 1
