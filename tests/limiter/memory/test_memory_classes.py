"""`memory_classes` and `pool_growth` on a real GPU, and on a simulated card with contexts of the real size."""

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

import limiter
from simgpu import state_directory
from simgpu.world import World

ROOT = Path(limiter.__file__).parents[1]


def steps(env: Mapping[str, str], module: str = "memory_classes") -> str:
    """Output of the program, which must have exited with 0."""
    done = subprocess.run(
        [sys.executable, "-m", f"tests.gpu.{module}"],
        env={**env, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.gpu
def test_each_memory_class_is_charged_its_use_on_the_card() -> None:
    assert "capture" in steps(os.environ)


@pytest.mark.slow
def test_each_memory_class_is_charged_its_use_on_the_simulated_card(
    make_world: Callable[..., World], shim: Path
) -> None:
    assert shim.is_file()
    world = make_world(tuple(replace(card, context_mib=518) for card in state_directory.make_cards(1)))
    assert "capture" in steps(world.environment())


@pytest.mark.gpu
def test_fragmented_pools_are_charged_when_they_grow() -> None:
    assert "grown" in steps(os.environ, "pool_growth")


@pytest.mark.slow
def test_simulated_pools_are_charged_when_they_grow(make_world: Callable[..., World], shim: Path) -> None:
    assert shim.is_file()
    world = make_world(tuple(replace(card, context_mib=518) for card in state_directory.make_cards(1)))
    assert "grown" in steps(world.environment(), "pool_growth")
