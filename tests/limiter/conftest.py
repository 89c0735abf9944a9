"""Processes of the simulated driver under the limiter, and the limiter's pure modules as a library for ctypes."""

import ctypes
import os
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn

import pytest

import limiter
from limiter import build, launch
from limiter.build import toolchain
from simgpu import state_directory
from simgpu.session import ProbeSession
from simgpu.world import World, worlds
from tests.limiter.compute import turn_structures
from vgpu.domain.formats import limits, region
from vgpu.domain.formats.limits import Limits
from vgpu.domain.formats.region import Region

MIB = 1 << 20
CONTEXT, MODULE = 20, 4  # MiB that a context and a module take, of container_with_code
LOAD = "made('cuModuleLoadData', b'')"
HERE = Path(__file__).parent
SOURCES = Path(limiter.__file__).parent / "src"
Build = Callable[..., Path]
CHECK_LOCKS = "-DVGPU_CHECK_LOCKS"  # limiter/src/process/lock.h
NOT_LINKED = {"resolve.c", "loading.c", "start.c", "asan_order.c", "own_memory.c"}  # what makes it a preloaded library
UNHOOKED = (*(path for path in build.library_sources() if path.name not in NOT_LINKED), HERE / "unhooked.c")


@dataclass(frozen=True, slots=True)
class Container:
    """Processes that share limits and a region, over the simulated cards of `world`."""

    world: World
    folder: Path

    @property
    def env(self) -> dict[str, str]:
        return launch.variables(self.folder, {})

    def session(self, **more: str) -> ProbeSession:
        return self.world.session(**{**self.env, **more})

    def probe(self, *arguments: str, program: str = "gpuprobe", **more: str) -> list[dict[str, Any]]:
        return self.world.probe(*arguments, program=program, **{**self.env, **more})

    def region(self) -> Region:
        return region.decode((self.folder / "region").read_bytes())

    def used_mib(self, card: int = 0) -> int:
        uuid = self.world.cards[card].uuid
        return sum(row.used_bytes for row in self.region().cards if row.gpu == uuid) // MIB

    def limit(self, wanted: Limits) -> None:
        """Rewrites the limits in place, as the device plugin does, and returns once programs have noticed."""
        path = self.folder / "limits"
        with path.open("r+b") as file:
            for offset, piece in limits.rewrite(path.read_bytes(), wanted):
                file.seek(offset)
                file.write(piece)
                file.flush()
        time.sleep(limits.NOTICED_S)


@pytest.fixture(scope="session")
def shim() -> Path:
    build.ensure()
    return limiter.library_path()


@pytest.fixture
def make_world(tmp_path: Path) -> Iterator[Callable[..., World]]:
    with worlds(tmp_path, "tests.cuda_calls.session") as make:
        yield make


@pytest.fixture
def world(make_world: Callable[..., World], shim: Path) -> World:
    assert shim.is_file()
    return make_world()


@pytest.fixture
def make_container(world: World) -> Iterator[Callable[..., Container]]:
    made: list[Path] = []

    def make(memory: str | None = "64MiB", cores: int | None = 100, memory_policy: str = "refuse") -> Container:
        policy = "fixed" if cores else "burst"
        made.append(launch.write_files(launch.parse(memory, cores, policy, memory_policy)))
        return Container(world, made[-1])

    yield make
    for folder in made:
        shutil.rmtree(folder)


@pytest.fixture
def container(make_container: Callable[..., Container]) -> Container:
    return make_container()


@pytest.fixture
def container_with_code(make_world: Callable[..., World], make_container: Callable[..., Container]) -> Container:
    """A limit of 64 MiB on cards whose contexts take CONTEXT MiB and modules MODULE MiB."""
    cards = tuple(
        replace(card, context_mib=CONTEXT, module_kib=MODULE * 1024) for card in state_directory.make_cards(2)
    )
    return replace(make_container("64MiB"), world=make_world(cards))


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Build:
    """Compiles a source, named by its path below this folder, for our oldest glibc or for musl."""

    def compiled(source: str, *options: str, target: str | None = None) -> Path:
        program = tmp_path_factory.mktemp("built") / Path(source).stem
        compiler = [sys.executable, "-m", "ziglang", "cc", "-target", target] if target else None
        command = [*(compiler or toolchain.compiler(platform.machine())), "-std=gnu11", "-D_GNU_SOURCE", *options]
        subprocess.run(
            [*command, str(HERE / source), "-ldl", "-o", str(program)],
            check=True,
            capture_output=True,
        )
        return program

    return compiled


def compile_as_limiter(output: Path, *arguments: str) -> None:
    """Compile and link with the limiter's compiler and warnings, for this machine."""
    command = [*toolchain.compiler(platform.machine()), *build.flags(), "-O1", *arguments]
    subprocess.run([*command, "-ldl", "-lpthread", "-o", str(output)], check=True)


@pytest.fixture(scope="session")
def pure(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """The limiter's modules with every function exported, and without what makes it a preloaded library."""
    library = tmp_path_factory.mktemp("pure") / "libpure.so"
    compile_as_limiter(library, "-shared", *map(str, UNHOOKED))
    loaded = ctypes.CDLL(str(library))
    for name in ("region_anonymous", "region_open"):
        getattr(loaded, name).restype = ctypes.c_void_p
    for name in (
        "account_reserve",
        "account_used_by_process",
        "account_reconcile",
        "account_reconcile_other",
        "account_add_pool_export",
        "account_add_memory_export",
        "pool_exports_find",
        "limits_decode",
        "limits_parse",
        "hash_table_put",
        "identity_is_dead",
        "pointers_add",
        "array_chunks_join",
        "cadence_take",
    ):
        getattr(loaded, name).restype = ctypes.c_bool
    loaded.account_calls.restype = ctypes.c_uint64
    return loaded


@pytest.fixture(scope="session")
def compute(pure: ctypes.CDLL) -> ctypes.CDLL:
    """The modules of turns, token bucket and estimates."""
    return turn_structures.declare(pure)


def skip_outside_ci(reason: str) -> NoReturn:
    """Ends a test that lacks something of the machine, which `.ci/run` installs: there the test fails."""
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)


def region_bytes(place: int) -> bytes:
    """The bytes of a region that a pure function mapped."""
    return ctypes.string_at(place, region.SIZE)


def environment_without_limits() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("VGPU_")}
