"""The lock ranks of limiter/src/process/lock.h: a build that checks them aborts if the order is broken."""

import re
import subprocess
from pathlib import Path

import pytest

from tests.limiter.conftest import CHECK_LOCKS, SOURCES, Build

LOCK_C = [str(SOURCES / "process" / name) for name in ("lock.c", "mutex.c")]


@pytest.fixture(scope="module")
def program(built: Build) -> Path:
    return built("robustness/lock_order.c", CHECK_LOCKS, f"-I{SOURCES}", *LOCK_C, "-lpthread")


def ranks() -> list[str]:
    listed = (SOURCES / "process" / "lock.h").read_text().partition("enum lock {")[2].partition("};")[0]
    return re.findall(r"^ +LOCK_(\w+),", listed, re.MULTILINE)


def take(program: Path, first: str, second: str) -> subprocess.CompletedProcess[str]:
    numbers = [str(ranks().index(name)) for name in (first, second)]
    return subprocess.run([program, *numbers], capture_output=True, text=True, check=False)


def test_locks_may_be_taken_in_the_order_of_their_ranks(program: Path) -> None:
    done = take(program, "POOLS", "REGION")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(("first", "second"), [("REGION", "POOLS"), ("POINTERS", "POINTERS")])
def test_a_lock_order_inversion_or_a_recursive_lock_aborts(program: Path, first: str, second: str) -> None:
    done = take(program, first, second)
    assert done.returncode < 0
    assert done.stderr.startswith(f"lock order: lock {ranks().index(second)} is taken while")


def test_every_mutex_of_the_limiter_is_ranked() -> None:
    """A mutex lies in lock.c, or in one of the three structures that lock.h names."""
    allowed = {
        "process/lock.c",
        "common/region_layout.h",
        "region/region.c",
        "compute/gate/gate_state.h",
        "compute/link/arbiter_link.h",
    }
    with_mutex = {
        str(path.relative_to(SOURCES))
        for path in SOURCES.rglob("*.[ch]")
        if re.search(r"\bpthread_mutex_t\b", path.read_text())
    }
    assert with_mutex <= allowed
