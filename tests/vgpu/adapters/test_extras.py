"""A program whose extra is not installed names the extra."""

import subprocess
import sys
from pathlib import Path

import pytest

from vgpu.adapters import extras

ROOT = Path(__file__).parents[3]


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("module", "program", "missing"),
    [
        ("extender", "extender", "uvicorn"),
        ("webhook", "webhook", "cryptography"),
        ("deviceplugin", "deviceplugin", "grpc"),
        ("vgpu.simulator", "simulator", "aiohttp"),
    ],
)
def test_a_program_names_the_extra_to_install(module: str, program: str, missing: str) -> None:
    start = f"import runpy, sys; sys.modules[{missing!r}] = None; runpy.run_module({module!r}, run_name='__main__')"
    done = subprocess.run([sys.executable, "-c", start], cwd=ROOT, capture_output=True, text=True, check=False)
    hint = "install it with: pip install 'vgpushare[cluster]'"
    assert done.stderr == f"{program}: the Python module {missing} is missing; {hint}\n"
    assert done.returncode == 1


def test_a_missing_module_of_vgpushare_is_an_ordinary_error() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"vgpu\.nothing"), extras.needed("cluster", by="extender"):
        import vgpu.nothing  # type: ignore[import-not-found] # noqa: F401, PLC0415
