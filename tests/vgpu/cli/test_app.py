"""The command `vgpu run`, with the real limiter."""

import os
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

import limiter
import vgpu
from vgpu.cli import app
from vgpu.domain.asks.policy import ComputePolicy, MemoryPolicy
from vgpu.domain.formats import limits

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


def test_help_has_a_line_for_each_paragraph_of_a_docstring() -> None:
    assert app.help_text("One.\n\nTwo\nis long.\n  And on.") == "One.\n\nTwo is long. And on."
    _, output = run("top", "-h")
    assert "time is not measured, as" in " ".join(output.split())
    assert "is not \n" not in output


def commands(found: Any, words: str = "vgpu") -> Iterator[tuple[str, Any]]:
    yield words, found
    for name, command in getattr(found, "commands", {}).items():
        yield from commands(command, f"{words} {name}")


def test_help_is_short_and_says_units_and_defaults() -> None:
    """A value has a metavar, which names its unit, or a list of choices, and its help is not longer than two lines."""
    program = typer.main.get_command(app.build({}, limiter.this_host(), Path("/none"), NOW))
    for words, command in commands(program):
        assert 0 < len(command.get_short_help_str(200)) <= 110, words
        for option in command.params:
            where, text = f"{words} {option.name}", getattr(option, "help", None) or ""
            assert 0 < len(text) <= 150, where
            if option.param_type_name == "option" and not option.is_flag:
                assert option.metavar or getattr(option.type, "choices", None), where
                assert option.show_default or option.default is None or "default" in text, where


def test_every_command_that_asks_the_admin_rest_has_the_same_options_for_it() -> None:
    program = typer.main.get_command(app.build({}, limiter.this_host(), Path("/none"), NOW))
    which = {"server", "context", "kubeconfig", "token", "certificate_authority", "admin_namespace"}
    found = {words: which & {option.name for option in command.params} for words, command in commands(program)}
    asking = {words: options for words, options in found.items() if "server" in options}
    assert len(asking) >= 11
    assert [words for words, options in asking.items() if options != which] == []


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


def test_arguments_that_are_not_utf_8_pass(home: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    """In the arguments of a Python program they are lone surrogates, which UTF-8 cannot encode."""
    arguments = ["/bin/sh", "-c", 'printf %s "$1"; cat "${VGPU_LIMITS_FILE%limits}command"', "sh", "\udcff\udce9"]
    assert run("run", "--gpu-mem", "4Gi", "--", *arguments, VGPU_STATE_DIR=str(home))[0] == 0
    said = capfdbinary.readouterr().out
    assert (said[:2], said.count(b"\xff\xe9")) == (b"\xff\xe9", 2)
    assert list(home.glob("*/*/")) == []


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
        (["--gpu-mem", "8", "true"], 2, "'8' is 8 MiB, too little for a CUDA program; write 8Gi or 8Mi"),
        (["--gpu-mem", "8B", "true"], 2, "not an amount of memory: '8B'; write 8Gi"),
        (["--gpu-mem", "8192B", "true"], 2, "not an amount of memory: '8192B'; write 8Gi"),
        (["--gpu-mem", "0", "true"], 2, "'0' would refuse every allocation"),
        (["--gpu-mem", "999999Gi", "true"], 2, "more than any card has; the most is 16384Gi"),
        (["--gpu-mem", "99999999999999999999Gi", "true"], 2, "more than any card has; the most is 16384Gi"),
        (["--gpu-mem", "99999999999999999999.5", "true"], 2, "more than any card has; the most is 16384Gi"),
        (["--gpu-mem", "9999999999Ki", "true"], 2, "not an amount of memory"),  # 9 TiB, with more digits than are read
        (["--gpu-mem", "4Gi", "--compute-policy", "fixed", "true"], 2, "give the cores too, in percent"),
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


@pytest.mark.parametrize("word", ["history", "histroy", "events"])
def test_a_word_of_the_documents_that_is_no_command_says_what_to_use(word: str) -> None:
    code, output = run(word)
    said = " ".join(output.replace("│", " ").split())
    assert code == 2
    assert f"No such command '{word}': the history is shown by `vgpu usage` (hours and cost), `vgpu rightsize`" in said


def test_a_misspelled_command_is_suggested() -> None:
    assert "No such command 'rightsiz'. Did you mean 'rightsize'?" in run("rightsiz")[1]


def test_without_a_command_help_is_shown() -> None:
    code, output = run()
    assert (code, "run" in output) == (2, True)
