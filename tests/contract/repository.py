"""The files of the repository that people write, and the settings of the tests that read them."""

import subprocess
import tomllib
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
UNCHECKED = ("LICENSE", "*.lock", "*.sum", "*.svg", "*.png", "deviceplugin/kubelet/api/*")
SETTINGS_TABLES = "[tool.vgpushare"


@cache
def files() -> tuple[str, ...]:
    """Paths of all files that git tracks or would add, from the root."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    return tuple(sorted(path for path in listed if (ROOT / path).is_file()))


def checked_files() -> list[str]:
    """Paths of the files that people write: no lock files, no generated code."""
    return [path for path in files() if not any(fnmatch(path, pattern) for pattern in UNCHECKED)]


def settings() -> dict[str, Any]:
    """The table `tool.vgpushare` of pyproject.toml."""
    tables: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["vgpushare"]
    return tables


def text_of(path: str) -> str:
    """A file's text; that of pyproject.toml ends where the tables begin that list what must not be written."""
    text = (ROOT / path).read_text()
    return text.partition(SETTINGS_TABLES)[0] if path == "pyproject.toml" else text
