"""On a real GPU: programs under a limit, by every way to load the library (`make gpu`)."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import limiter
from tests.gpu import load_paths

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(300)]

ROOT = Path(limiter.__file__).parents[1]


def has_torch(python: str) -> bool:
    return subprocess.run([python, "-c", "import torch"], check=False, capture_output=True).returncode == 0


@pytest.fixture(scope="session")
def python() -> str:
    """An interpreter with PyTorch: this one, or the system's."""
    for candidate in (sys.executable, shutil.which("python3", path="/opt/torch/.venv/bin:" + os.environ["PATH"])):
        if candidate and has_torch(candidate):
            return candidate
    raise AssertionError("no Python with PyTorch on this machine")


def run(python: str, module: str, *arguments: str) -> None:
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [python, "-m", f"tests.gpu.{module}", *arguments]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("case", load_paths.CASES)
def test_a_program_stays_within_its_limit_and_continues(python: str, case: str) -> None:
    run(python, "load_paths", case)


def test_the_charge_equals_the_process_s_memory(python: str) -> None:
    run(python, "overhead")
