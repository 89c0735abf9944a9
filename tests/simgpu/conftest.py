"""Two simulated cards, and a process that calls CUDA on them."""

import ctypes
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from simgpu import build
from simgpu.session import ProbeSession
from simgpu.world import World, worlds
from tests.simgpu.timeline import card_timeline

SESSION = "tests.cuda_calls.session"


@pytest.fixture(scope="session")
def built_simgpu() -> Path:
    return build.ensure()


@pytest.fixture(scope="session")
def timeline(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    return card_timeline.compiled(tmp_path_factory.mktemp("timeline") / "libtimeline.so")


@pytest.fixture
def make_world(tmp_path: Path) -> Iterator[Callable[..., World]]:
    with worlds(tmp_path, SESSION) as make:
        yield make


@pytest.fixture
def world(make_world: Callable[..., World]) -> World:
    return make_world()


@pytest.fixture
def session(world: World) -> ProbeSession:
    started = world.session()
    assert started("start()") == 0
    return started
