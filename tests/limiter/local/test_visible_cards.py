"""`visible_cards`, on two simulated cards."""

import subprocess
import sys
from pathlib import Path

import pytest

import limiter
from simgpu.world import World

pytestmark = pytest.mark.slow

ROOT = Path(limiter.__file__).parents[1]


def test_each_card_has_its_own_limit_under_any_cuda_visible_devices(world: World) -> None:
    command = [sys.executable, "-m", "tests.gpu.visible_cards"]
    done = subprocess.run(command, env=world.environment(), cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("own card") == 26
