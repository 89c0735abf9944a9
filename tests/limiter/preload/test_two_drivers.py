"""A process that loads more than one copy of NVIDIA's libraries has its limits once, over all of them."""

import itertools
import json
import platform
import shutil
import subprocess
from pathlib import Path

import pytest

from limiter.build import toolchain
from simgpu.build import OUT
from tests.limiter.conftest import Container

HERE = Path(__file__).parent
LIMIT_MIB, MIB = 64, 24
OUT_OF_MEMORY = 2
GIVEN, REFUSED = [0, 0, LIMIT_MIB, 0], [0, OUT_OF_MEMORY, LIMIT_MIB, 0]


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("two") / "two_drivers"
    command = [*toolchain.compiler(platform.machine()), "-D_GNU_SOURCE", str(HERE / "two_drivers.c"), "-ldl"]
    subprocess.run([*command, "-o", str(path)], check=True)
    return path


@pytest.fixture
def copies(tmp_path: Path) -> Path:
    """A folder with copies of both libraries, under names with and without a version."""
    folder = tmp_path / "compat"
    folder.mkdir()
    for name in ("libcuda.so.1", "libnvidia-ml.so.1"):
        for copied in (name, name.removesuffix(".1"), f"{name}.580.159"):
            shutil.copy(OUT / name, folder / copied)
    return folder


def run(container: Container, program: Path, *uses: str, mib: int = MIB, **more: str) -> tuple[list[list[int]], str]:
    env = container.world.environment(**container.env, **more)
    done = subprocess.run([program, str(mib), *uses], env=env, capture_output=True, text=True, check=False, timeout=30)
    assert done.returncode == 0, done
    return [json.loads(line) for line in done.stdout.splitlines()], done.stderr


def paths(copies: Path) -> list[str]:
    return ["libcuda.so.1", f"{copies}/libcuda.so.1", f"{copies}/libcuda.so", f"{copies}/libcuda.so.1.580.159"]


@pytest.mark.heavy
@pytest.mark.parametrize("ways", [*itertools.product(("open", "deep", "address"), repeat=2)])
@pytest.mark.parametrize("order", [*itertools.permutations(range(4), 2)])
def test_two_copies_have_one_limit_in_any_order(
    container: Container, program: Path, copies: Path, order: tuple[int, int], ways: tuple[str, str]
) -> None:
    uses = [f"{way}:{paths(copies)[number]}" for way, number in zip(ways, order, strict=True)]
    results, _ = run(container, program, *uses, uses[0], uses[1])
    assert results == [GIVEN, GIVEN, REFUSED, REFUSED]
    (card,) = container.region().cards
    assert card.peak_bytes == 2 * MIB << 20


@pytest.mark.parametrize("first", ["open", "space"])
@pytest.mark.parametrize("second", ["open", "space"])
def test_a_copy_in_a_namespace_shares_the_limit(
    container: Container, program: Path, copies: Path, first: str, second: str
) -> None:
    copy = f"{copies}/libcuda.so.1"
    results, _ = run(container, program, f"{first}:libcuda.so.1", f"{second}:{copy}", f"space:{copy}")
    assert results == [GIVEN, GIVEN, REFUSED]


def test_a_copy_that_is_found_by_its_name_without_a_version_shares_the_limit(
    container: Container, program: Path, copies: Path
) -> None:
    folders = f"{OUT}:{copies}"
    results, _ = run(
        container, program, "open:libcuda.so.1", "open:libcuda.so", "open:libcuda.so", LD_LIBRARY_PATH=folders
    )
    assert results == [GIVEN, GIVEN, REFUSED]


@pytest.mark.parametrize(
    "names", [*itertools.permutations(("libnvidia-ml.so.1", "COPY/libnvidia-ml.so.1", "COPY/libnvidia-ml.so"), 2)]
)
def test_each_copy_of_nvml_shows_the_limit(
    container: Container, program: Path, copies: Path, names: tuple[str, str]
) -> None:
    first, second = (f"nvml:{name.replace('COPY', str(copies))}" for name in names)
    results, _ = run(container, program, first, "open:libcuda.so.1", second, "open:libcuda.so.1")
    assert [seen for *_, seen in results] == [LIMIT_MIB] * 2


def test_a_second_copy_is_told_of_once(container: Container, program: Path, copies: Path) -> None:
    uses = [f"open:{path}" for path in paths(copies)]
    _, told = run(container, program, *uses, mib=1)
    assert told.count("\n") == 1
    assert f"{copies}/libcuda.so" in told
    assert "is a second copy" in told


def test_a_program_without_limits_uses_the_copies_that_it_loads(
    container: Container, program: Path, copies: Path
) -> None:
    """The simulated driver keeps what each copy holds by itself: both get more than there could be under limits."""
    env = container.world.environment()
    command = [str(program), "40", "open:libcuda.so.1", f"open:{copies}/libcuda.so.1"]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True, timeout=30)
    assert [json.loads(line)[1] for line in done.stdout.splitlines()] == [0, 0]
