"""Updates of a charge for which the region's lock cannot be had are made later, each once."""

import ctypes
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from limiter import launch
from tests.limiter.conftest import MIB
from vgpu.domain.formats import region

# Takes the region's lock and keeps it until its standard input ends.
HOLDER = """
import ctypes, sys
pure = ctypes.CDLL(sys.argv[1])
pure.region_open.restype = ctypes.c_void_p
place = ctypes.c_void_p(pure.region_open(sys.argv[2].encode()))
assert pure.region_lock(place, 1000) == 0
print("held", flush=True)
sys.stdin.read()
pure.region_unlock(place)
"""
# Makes each update while the lock is held, and then another one, which applies those before.
UPDATER = """
import ctypes, subprocess, sys
pure, U64 = ctypes.CDLL(sys.argv[1]), ctypes.c_uint64
pure.container_join(bytes(range(16)))
holder = [sys.executable, "-S", "-c", sys.argv[3], sys.argv[1], sys.argv[2]]
with subprocess.Popen(holder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
    process.stdout.readline()
    for function, mib in (("charge_unconditionally", 9), ("charge_mark_managed", 5), ("charge_unmark_managed", 2),
                          ("release_charge", 1), ("release_managed", 1)):
        pure[function](0, U64(mib << 20))
pure.charge_unconditionally(0, U64(1 << 20))
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    made = launch.write_files(launch.parse("64MiB", 100, "fixed"))
    yield made
    shutil.rmtree(made)


def test_updates_during_a_held_lock_are_made_afterwards(pure: ctypes.CDLL, folder: Path) -> None:
    path = folder / "region"
    env = {"VGPU_LIMITS_FILE": str(folder / "limits"), "VGPU_REGION_FILE": str(path)}
    command = [sys.executable, "-S", "-c", UPDATER, str(pure._name), str(path), HOLDER]
    subprocess.run(command, env=env, check=True, timeout=20)
    (process,) = region.decode(path.read_bytes()).processes
    ((gpu, used),) = process.used_bytes
    assert (used, process.managed_bytes) == (8 * MIB, ((gpu, 2 * MIB),))
