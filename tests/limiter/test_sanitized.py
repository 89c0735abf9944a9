"""The modules that know no CUDA, under the address and undefined-behaviour sanitizers, fed with foreign bytes."""

import shutil
import subprocess
from pathlib import Path

import pytest

from limiter import build
from tests.limiter.conftest import PURE, SOURCES

HERE = Path(__file__).parent
SANITIZERS = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-g", "-O1"]


@pytest.fixture(scope="session")
def fuzz(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built by the system's compiler, for the one in the wheel carries no address sanitizer."""
    compiler = shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("needs gcc or clang with its sanitizers")
    program = tmp_path_factory.mktemp("fuzz") / "fuzz"
    sources = [HERE / "fuzz.c", *(SOURCES / f"{name}.c" for name in PURE)]
    done = subprocess.run([compiler, *build.flags(), *SANITIZERS, *sources, "-lpthread", "-o", program], check=False)
    if done.returncode:
        pytest.skip("the system's compiler has no sanitizers")
    return program


@pytest.mark.parametrize("seed", range(4))
def test_foreign_bytes_and_long_histories_are_clean(fuzz: Path, seed: int) -> None:
    done = subprocess.run([fuzz, str(seed)], capture_output=True, text=True, check=False, timeout=50)
    assert (done.returncode, done.stderr) == (0, "")
