"""Simulated cards on which the benchmark scripts run; the limiter is built."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import limiter
from limiter import build
from simgpu.world import World, worlds


@pytest.fixture(scope="session")
def shim() -> Path:
    build.ensure()
    return limiter.library_path()


@pytest.fixture
def make_world(tmp_path: Path, shim: Path) -> Iterator[Callable[..., World]]:
    assert shim.is_file()
    with worlds(tmp_path) as make:
        yield make


@pytest.fixture
def world(make_world: Callable[..., World]) -> World:
    return make_world()
