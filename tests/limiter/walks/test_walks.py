"""Random programs behave with the library as without it; `python -m tests.limiter.walks` runs more of them."""

import shutil
import time
from itertools import count
from pathlib import Path

import pytest

from simgpu import build as simgpu_build
from tests.limiter.conftest import skip_outside_ci
from tests.limiter.walks.plan import plan
from tests.limiter.walks.programs import Build, compiled
from tests.limiter.walks.trial import faults_of

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

SECONDS = 20


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("gcc") is None:
        skip_outside_ci("needs gcc with its sanitizers")
    return tmp_path_factory.mktemp("walks")


@pytest.mark.usefixtures("shim")
@pytest.mark.parametrize("build", list(Build))
def test_random_programs_behave_as_without_the_library(programs: Path, build: Build) -> None:
    simgpu_build.ensure()
    for kind in (Build.PRELOADED, build):
        compiled(programs, kind)
    end = time.monotonic() + SECONDS
    for seed in count(1):
        found, _ = faults_of(plan(seed, build), programs)
        assert not found, "\n".join([f"python -m tests.limiter.walks --only {seed} --build {build}", *found])
        if time.monotonic() > end:
            break


def test_the_same_seed_makes_the_same_plan() -> None:
    assert plan(7) == plan(7)
    assert len({plan(seed) for seed in range(50)}) == 50
