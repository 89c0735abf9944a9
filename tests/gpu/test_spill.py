"""On a real GPU that another process has filled (`make gpu`)."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import limiter

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(300)]

ROOT = Path(limiter.__file__).parents[1]


def test_on_a_full_card_the_spill_policy_uses_managed_memory() -> None:
    command = [sys.executable, "-m", "tests.gpu.spill"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert json.loads(done.stdout)["wrong"] == [], done.stdout
