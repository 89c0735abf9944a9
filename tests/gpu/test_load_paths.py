"""On a real GPU: programs under a limit, by every way to load the library (`make gpu`)."""

import os
import shutil
import subprocess
import sys

import pytest

from tests.gpu import load_paths, trial

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(300)]


def has_torch(python: str) -> bool:
    return subprocess.run([python, "-c", "import torch"], check=False, capture_output=True).returncode == 0


@pytest.fixture(scope="session")
def python() -> str:
    """An interpreter with PyTorch: this one, or the system's."""
    for candidate in (sys.executable, shutil.which("python3", path="/opt/torch/.venv/bin:" + os.environ["PATH"])):
        if candidate and has_torch(candidate):
            return candidate
    raise AssertionError("no Python with PyTorch on this machine")


@pytest.mark.parametrize("case", load_paths.CASES)
def test_a_program_stays_within_its_limit_and_continues(python: str, case: str) -> None:
    trial.run("load_paths", case, python=python)


def test_the_charge_equals_the_process_s_memory(python: str) -> None:
    trial.run("overhead", python=python)
