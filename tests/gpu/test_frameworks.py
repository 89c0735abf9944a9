"""On a real GPU: what people run computes the same under a limit, on its own card, through changes of the limit."""

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
def test_a_framework_computes_the_same_and_is_stopped_by_its_own_error(python: str, name: str) -> None:
    said = run(python, "frameworks", name)
    if "left out" in said:
        pytest.skip(said.strip())


def test_each_limit_is_on_its_own_card_under_any_choice_of_cards(python: str) -> None:
    run(python, "visible_cards")


def test_a_change_of_the_limit_is_in_force_at_the_next_allocation(python: str) -> None:
    run(python, "resize")
