"""Lookups of all listed functions, with the limiter and natively."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import limiter
from limiter.build import headers
from simgpu.world import World
from tests.limiter.conftest import environment_without_limits
from tests.limiter.preload import symbols

ROOT = Path(limiter.__file__).parents[1]
PRELOADED = {"LD_PRELOAD": str(ROOT / "limiter" / limiter.LIBRARY), "VGPU_MEMORY_LIMIT": "1GiB"}


def compare(env: dict[str, str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.limiter.preload.symbols"],
        env={**env, "PYTHONPATH": str(ROOT)},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=55,
    )
    assert done.returncode == 0, (done.stdout[-4000:], done.stderr)
    assert " 0 differ" in done.stdout
    assert int(re.findall(r"(\d+) questions", done.stdout)[0]) > 200_000


@pytest.mark.slow
@pytest.mark.parametrize("more", [PRELOADED, {}], ids=["preloaded", "limits itself"])
def test_lookups_agree_with_the_simulated_driver(world: World, more: dict[str, str]) -> None:
    compare(world.environment(**more))


@pytest.mark.gpu
@pytest.mark.parametrize("more", [PRELOADED, {}], ids=["preloaded", "limits itself"])
def test_lookups_agree_with_the_driver(shim: Path, more: dict[str, str]) -> None:
    assert shim.is_file()
    compare({**environment_without_limits(), **more})


@pytest.mark.slow
def test_every_version_with_a_header_change_is_queried() -> None:
    texts = [file.read_text() for name in headers.FOLDERS for file in headers.folder(name).glob("cuda*Typedefs.h")]
    versions = {int(version) for text in texts for version in re.findall(r"PFN_cu\w+?_v(\d{4,5})", text)}
    assert versions == set(symbols.VERSIONS)
