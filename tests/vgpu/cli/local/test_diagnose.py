"""`vgpu diagnose` on the command line."""

import json
import os
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
from typer.testing import CliRunner

import limiter
from vgpu.cli import app
from vgpu.cli.local import diagnose

LOOP = "import torch\nmodel.to('cuda')\nfor batch in loader:\n    loss = model(batch)\n    loss.backward()\n"


def run(*arguments: str) -> tuple[int, str]:
    program = app.build(os.environ, limiter.this_host(), Path("/none"), lambda: datetime(2026, 11, 22, tzinfo=UTC))
    outcome = CliRunner().invoke(program, ["diagnose", *arguments])
    return outcome.exit_code, outcome.output


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "a script.py"
    path.write_text(f"{LOOP}    print(loss.item())\n    print(loss.item())\n")
    return path


def test_findings_as_text(script: Path) -> None:
    code, output = run("--script", str(script))
    assert code == 1
    lines = output.splitlines()
    assert lines[0] == f"{script}:6: sync-each-step: .item() in the loop of line 3 (also lines 7)"
    assert [line[:7] for line in lines[1:4]] == ["  why: ", "  cure:", "  gain:"]
    assert lines[4].startswith(f"{script}:6: print-each-step: ")


def test_findings_as_json_of_two_subjects(script: Path, tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b"\xff\nNCCL version 2.4.7+cuda10.0\n")
    code, output = run("--script", str(script), "--nccl-log", str(tmp_path / "log"), "-o", "json")
    first, second = map(json.loads, output.splitlines())
    assert code == 1
    assert [finding["code"] for finding in first["findings"]] == ["sync-each-step", "print-each-step"]
    assert [(finding["code"], finding["lines"]) for finding in second["findings"]] == [("nccl-old", [2])]


def test_nothing_found(tmp_path: Path) -> None:
    path = tmp_path / "healthy.py"
    path.write_text(LOOP)
    assert run("--script", str(path)) == (0, f"{path}: no findings\n")


def test_a_script_of_another_framework_was_not_looked_at(tmp_path: Path) -> None:
    """It had "no findings" and exit code 0, as a script in which all is well."""
    path = tmp_path / "train.py"
    path.write_text("import jax\nfor batch in batches:\n    print(jax.device_get(step(batch)))\n")
    code, output = run("--script", str(path))
    assert (code, f"{path}: no import of PyTorch or TensorFlow was seen, so nothing was looked at" in output) == (
        2,
        True,
    )


def test_storage_is_not_judged_by_a_tiny_file(tmp_path: Path) -> None:
    """300 bytes were slow storage: 0 MB/s."""
    (tmp_path / "one").write_bytes(b"x" * 300)
    code, output = run("--data", str(tmp_path))
    assert (code, "too little to measure its storage: 1 files, 300 bytes" in output) == (2, True), output


def test_a_file_in_a_pods_place_is_named(script: Path) -> None:
    """It looked for a kubeconfig."""
    code, output = run(str(script))
    assert (code, f"{script} is a file: give it with --script" in output) == (2, True), output


def test_a_part_of_a_huge_log_is_read(tmp_path: Path) -> None:
    """A line that does not end is read in parts."""
    path = tmp_path / "log"
    path.write_bytes(b"NCCL version 2.4.7\n" * 9)
    with path.open("rb") as file:
        assert [*diagnose._lines_of(file, 20)] == ["NCCL version 2.4.7\n"] * 2
    path.write_bytes(bytes(200_000))
    with path.open("rb") as file:
        assert [len(line) for line in diagnose._lines_of(file, 150_000)] == [65536] * 3


def test_a_script_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    path = tmp_path / "old.py"
    path.write_text("x = 1\nprint 'x'\n")
    code, output = run("--script", str(path))
    assert (code, output[: output.index(". Did")]) == (
        2,
        f"vgpu diagnose: {path}: not a script in Python: line 2: Missing parentheses in call to 'print'",
    )


def test_a_data_set(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    for number in range(1000):
        (tmp_path / "data" / str(number)).write_bytes(b"x")
    (tmp_path / "data" / "link").symlink_to("/dev/zero")
    code, output = run("--data", str(tmp_path / "data"), "--needs", "0")
    assert code == 1
    assert "data: small-files: 1,000 files, the median of 0 KiB" in output
    assert "slow-storage" not in output
    slow = run("--data", str(tmp_path / "data"), "--needs", "1e9")[1]
    assert re.search(r"slow-storage: one reader got [\d,]+ MB/s from \w+, less than", slow)


def test_a_data_set_without_files(tmp_path: Path) -> None:
    assert run("--data", str(tmp_path)) == (2, f"vgpu diagnose: {tmp_path}: has no file that can be seen\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "give POD, --live, --script, --nccl-log, --data or --job"),
        (["--script", "/none.py"], "/none.py: No such file or directory"),
        (["--nccl-log", "/dev/null"], "/dev/null: not a regular file"),
        (["--data", "/dev/null"], "/dev/null: not a folder"),
        (["--job", "/etc/hostname"], "/etc/hostname: not JSON"),
        (["--nccl-log", "/etc/hostname"], "/etc/hostname: no line is NCCL's; run the job with NCCL_DEBUG=INFO"),
        (["--script", "/proc/self/mem"], "/proc/self/mem: Input/output error"),
        (["--data", "/", "--needs", "nan"], "nan is not a number"),
    ],
)
def test_wrong_usage(arguments: list[str], message: str) -> None:
    code, output = run(*arguments)
    assert (code, message in output) == (2, True)
