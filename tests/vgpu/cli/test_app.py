"""The command `vgpu run`, with the real limiter."""

import os
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from typer.testing import CliRunner

import limiter
import vgpu
from vgpu import limits
from vgpu.cli import app
from vgpu.policy import ComputePolicy, MemoryPolicy

NOW = lambda: datetime(2026, 11, 22, tzinfo=UTC)  # noqa: E731
SAY_LIMITS = (
    "import os, pathlib, sys; sys.stdout.buffer.write(pathlib.Path(os.environ['VGPU_LIMITS_FILE']).read_bytes())"
)


def run(*arguments: str, **environment: str) -> tuple[int, str]:
    outcome = CliRunner().invoke(
        app.build({**os.environ, **environment}, limiter.this_host(), Path("/none"), NOW), arguments
    )
    return outcome.exit_code, outcome.output


@pytest.mark.parametrize("words", [["version"], ["--version"]])
def test_version(words: list[str]) -> None:
    assert run(*words) == (0, f"vgpushare {vgpu.__version__}\n")


@pytest.mark.parametrize("words", [["-h"], ["run", "-h"], ["get", "-h"]])
def test_help_has_a_short_option(words: list[str]) -> None:
    code, output = run(*words)
    assert (code, "Usage:" in output) == (0, True)


def test_a_machine_without_a_gpu_is_named() -> None:
    code, output = run("run", "--gpu-mem", "1Gi", "--", "true")
    assert (code, "warning: no GPU can be used on this machine" in output) == (0, True)


def test_the_command_has_limits_and_its_allocation_is_removed_afterwards(
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    with_all = ["--gpu-mem", "4Gi", "--gpu-cores", "30", "--compute-policy", "burst", "--memory-policy", "spill"]
    assert run("run", *with_all, "--", sys.executable, "-c", SAY_LIMITS)[0] == 0
    found = limits.decode(capfdbinary.readouterr().out)
    assert found.cards == (limits.CardLimit(limits.ANY_GPU, 4 << 30, 30),)
    assert found.compute_policy is ComputePolicy.BURST
    assert found.memory_policy is MemoryPolicy.SPILL
    run("run", "--gpu-mem", "1Gi", "--", "/bin/sh", "-c", "echo $VGPU_LIMITS_FILE")
    assert not Path(capfdbinary.readouterr().out.decode().strip()).exists()


def test_options_after_the_command_belong_to_the_command(capfd: pytest.CaptureFixture[str]) -> None:
    assert run("run", "--gpu-mem", "4Gi", "/bin/echo", "--gpu-mem", "x", "--help")[0] == 0
    assert capfd.readouterr().out == "--gpu-mem x --help\n"


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--gpu-mem", "4Gi", "/bin/sh", "-c", "exit 9"], 9, ""),
        (["--gpu-mem", "4Gi", "no-such-command"], 127, "no-such-command: command not found"),
        (["--gpu-mem", "4Gi", "/"], 126, "/: Permission denied"),
        (["--gpu-mem", "4Qi", "true"], 2, "not an amount of memory: '4Qi'"),
        (["--gpu-cores", "101", "true"], 2, "--gpu-cores"),
        (["--gpu-mem", "4Gi", "--compute-policy", "greedy", "true"], 2, "greedy"),
        (["true"], 2, "nothing to limit"),
        (["--gpu-mem", "4Gi"], 2, "Missing argument"),
    ],
)
def test_exit_status_and_message(arguments: list[str], code: int, message: str) -> None:
    ended, output = run("run", *arguments)
    assert (ended, message in output) == (code, True), output


def test_vgpu_run_inside_vgpu_run_is_refused() -> None:
    code, output = run("run", "--gpu-mem", "80Gi", "true", VGPU_LIMITS_FILE="/dev/null")
    assert (code, "limited already" in output) == (125, True)


def test_without_a_command_help_is_shown() -> None:
    code, output = run()
    assert (code, "run" in output) == (2, True)
