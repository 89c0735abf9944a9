"""The kernel of the load generator on the simulated driver, in a process of its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from simgpu import build, state_directory

CARDS = state_directory.make_cards(2)
TIMED = """
import time
from vgpu.adapters.cuda import LoopKernel
from vgpu.domain.errors import CudaError
with LoopKernel({gpu!r}) as kernel:
    kernel.run(10)
    begun = time.monotonic()
    kernel.run(300_000)
    print(time.monotonic() - begun)
"""


def run(directory: Path, gpu: str) -> subprocess.CompletedProcess[str]:
    state_directory.write_cards(directory, CARDS)
    environment = {**os.environ, "LD_LIBRARY_PATH": str(build.ensure()), "SIMGPU_STATE": str(directory)}
    command = [sys.executable, "-c", TIMED.format(gpu=gpu)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_an_iteration_takes_a_microsecond(tmp_path: Path) -> None:
    done = run(tmp_path, CARDS[1].uuid)
    assert done.returncode == 0, done.stderr
    assert 0.3 <= float(done.stdout) < 2


@pytest.mark.slow
def test_a_card_that_cuda_does_not_show_is_named(tmp_path: Path) -> None:
    assert "CudaError: GPU-0: not among the 2 cards that CUDA shows" in run(tmp_path, "GPU-0").stderr
