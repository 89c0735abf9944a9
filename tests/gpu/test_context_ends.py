"""On a real GPU: memory that outlives the contexts of a process (`make gpu`)."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import limiter

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(300)]

ROOT = Path(limiter.__file__).parents[1]


def test_memory_of_the_device_stays_charged_and_spare_references_cost_little() -> None:
    command = [sys.executable, "-m", "tests.gpu.context_ends"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert json.loads(done.stdout)["wrong"] == [], done.stdout
