"""On a real GPU: frameworks under a limit, with every choice of cards, and while the limit changes."""

import os
import subprocess
from pathlib import Path

import pytest

import limiter
from tests.gpu import frameworks
from tests.gpu.test_load_paths import python

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(600)]

ROOT = Path(limiter.__file__).parents[1]
__all__ = ["python"]  # the fixture


def run(python: str, module: str, *arguments: str) -> str:
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [python, "-m", f"tests.gpu.{module}", *arguments]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("name", frameworks.TRIALS)
def test_a_framework_gets_equal_results_and_raises_its_own_error(python: str, name: str) -> None:
    output = run(python, "frameworks", name)
    if "left out" in output:
        pytest.skip(output.strip())


def test_each_card_has_its_own_limit_under_any_cuda_visible_devices(python: str) -> None:
    run(python, "visible_cards")


def test_a_changed_limit_holds_at_the_next_allocation(python: str) -> None:
    run(python, "resize")
