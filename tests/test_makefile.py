"""`make` before there is an environment: what a machine lacks is said, and no broken environment is left behind."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

MAKEFILE = Path(__file__).parents[1] / "Makefile"
# Stands for a Python of another version: `-c` runs in the tests' own, `-m venv` makes a folder and fails if told to.
INTERPRETER = """#!/bin/sh
case "$1" in
-c) exec {python} -c 'import sys
sys.version_info, sys.version = {version}, "{text} (main)"
exec(sys.argv[1])' "$2" ;;
*) mkdir -p .venv/bin && touch .venv/bin/python && exit {code} ;;
esac
"""


def made(folder: Path, version: tuple[int, ...], code: int) -> subprocess.CompletedProcess[str]:
    shutil.copy(MAKEFILE, folder / "Makefile")
    interpreter = folder / "interpreter"
    text = ".".join(map(str, version))
    interpreter.write_text(INTERPRETER.format(python=sys.executable, version=version, text=text, code=code))
    interpreter.chmod(0o755)
    command = ["make", ".venv/bin/python", f"PYTHON={interpreter}"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=30, check=False)


@pytest.mark.parametrize("version", [(3, 10, 13), (2, 7, 18)])
def test_a_python_that_is_too_old_is_named_before_an_environment_is_made_of_it(
    tmp_path: Path, version: tuple[int, ...]
) -> None:
    """pip named a package of which it found no version, and the environment of the old Python was used again."""
    found = made(tmp_path, version, code=0)
    assert (found.returncode, (tmp_path / ".venv").exists()) == (2, False), found
    assert f"Python {'.'.join(map(str, version))} is too old: name 3.11 or newer" in found.stderr


def test_an_environment_that_could_not_be_made_is_removed(tmp_path: Path) -> None:
    """Debian's Python without python3-venv leaves one without pip."""
    found = made(tmp_path, (3, 12, 1), code=1)
    assert (found.returncode, (tmp_path / ".venv").exists()) == (2, False), found


def test_an_environment_is_made(tmp_path: Path) -> None:
    found = made(tmp_path, (3, 11, 0), code=0)
    assert (found.returncode, (tmp_path / ".venv/bin/python").exists()) == (0, True), found
