"""`vgpu diagnose --live` of programs under the limiter, on the simulated GPU."""

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from typer.testing import CliRunner

import limiter
from simgpu import build, state_directory
from vgpu.cli import app

NOW = datetime(2026, 11, 23, tzinfo=UTC)
CARDS = [replace(each, context_mib=500) for each in state_directory.make_cards(1)]


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    state_directory.write_cards(tmp_path, CARDS)
    simulated = {
        "LD_LIBRARY_PATH": str(build.ensure()),
        "SIMGPU_STATE": str(tmp_path),
        "XDG_RUNTIME_DIR": str(tmp_path),
    }
    return {**os.environ, **simulated, "PATH": f"{build.ensure()}:{os.environ['PATH']}"}


@contextlib.contextmanager
def running(environment: dict[str, str], *command: str) -> Iterator[None]:
    limited = [sys.executable, "-m", "vgpu.cli", "run", "--gpu-mem=2Gi", "--gpu-cores=30", "--", *command]
    with subprocess.Popen(limited, env=environment, stdout=subprocess.DEVNULL) as program:
        yield
        program.terminate()


def diagnosed(environment: dict[str, str], name: str) -> tuple[int, str]:
    command = [sys.executable, "-m", "vgpu.cli", "diagnose", "--live", name, "--seconds=4", "-o", "json"]
    for _ in range(20):
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if done.returncode != 3:
            break
    return done.returncode, done.stdout or done.stderr


@pytest.mark.slow
def test_a_program_with_more_work_than_its_share(environment: dict[str, str]) -> None:
    with running(environment, "gpuprobe", "spin", "500"):
        code, output = diagnosed(environment, "gpuprobe")
    found = json.loads(output)
    assert code == 1
    assert [each["code"] for each in found["findings"]] == ["share-used-up"]
    assert "own share of 30 %" in found["findings"][0]["seen"]


@pytest.mark.slow
def test_a_program_that_has_stopped_to_use_its_card(environment: dict[str, str]) -> None:
    with running(environment, "sh", "-c", "timeout 2 gpuprobe spin 500; exec sleep 100"):
        subprocess.run(["sleep", "4"], check=True)
        code, output = diagnosed(environment, "sleep 100")
    assert code == 1
    assert [each["code"] for each in json.loads(output)["findings"]] == ["idle"]


def test_a_program_that_does_not_run_is_named(tmp_path: Path) -> None:
    program = app.build({"XDG_RUNTIME_DIR": str(tmp_path)}, limiter.this_host(), tmp_path, lambda: NOW)
    done = CliRunner().invoke(program, ["diagnose", "--live", "nothing-of-that-name"])
    assert done.exit_code == 3
    assert "no allocation of that ID, command or pod: nothing-of-that-name" in done.output
