"""The entry points of before CUDA 3.2, whose names have no version, are limited too."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.limiter.conftest import MIB, compile_as_limiter

PROGRAM = """
import ctypes, json
from ctypes import byref, c_uint
cuda = ctypes.CDLL("libcuda.so.1")
def alloc(mib):
    pointer = c_uint()
    return cuda.cuMemAlloc(byref(pointer), c_uint(mib << 20)), pointer
def info():
    free, total = c_uint(), c_uint()
    cuda.cuMemGetInfo(byref(free), byref(total))
    return [free.value >> 20, total.value >> 20]
def pitch(width, height):
    pitch = c_uint()
    return cuda.cuMemAllocPitch(byref(c_uint()), byref(pitch), width, height, 4), pitch.value
def total():
    bytes = c_uint()
    cuda.cuDeviceTotalMem(byref(bytes), 0)
    return bytes.value >> 20
cuda.cuInit(0)
first, held = alloc(40)
seen = {"first": first, "info": info(), "total": total(), "past": alloc(40)[0], "pitch past": pitch(100, 1 << 17)[0]}
seen["pitch"] = pitch(100, 2 << 10)
seen["freed"] = cuda.cuMemFree(held)
seen["again"] = alloc(60)[0]
seen["small"] = sum(alloc(1)[0] == 0 for _ in range(10))
print(json.dumps(seen))
"""


@pytest.fixture(scope="session")
def old_driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("old")
    compile_as_limiter(folder / "libcuda.so.1", "-shared", str(Path(__file__).with_name("old_driver.c")))
    return folder


def run(old_driver: Path, **env: str) -> dict[str, object]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, "LD_LIBRARY_PATH": str(old_driver), **env},
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
    )
    seen: dict[str, object] = json.loads(done.stdout)
    return seen


def test_the_old_entry_points_are_limited(shim: Path, old_driver: Path) -> None:
    assert run(old_driver, LD_PRELOAD=str(shim), VGPU_MEMORY_LIMIT="64MiB") == {
        "first": 0,
        "info": [24, 64],
        "total": 64,
        "past": 2,
        "pitch past": 2,
        "pitch": [0, 512],
        "freed": 0,
        "again": 0,
        "small": 1,  # the pitched allocation has used 2 of the remaining 4 MiB
    }


def test_without_a_limit_the_old_entry_points_are_unchanged(shim: Path, old_driver: Path) -> None:
    native = run(old_driver)
    assert native["info"] == [3 * 1024 - 40, 3 * 1024]
    assert run(old_driver, LD_PRELOAD=str(shim)) == native


def test_a_limit_above_32_bits_leaves_the_driver_s_figures(shim: Path, old_driver: Path) -> None:
    env = {"LD_PRELOAD": str(shim), "VGPU_MEMORY_LIMIT": f"{(1 << 33) // MIB}"}
    assert run(old_driver, **env) == run(old_driver)
