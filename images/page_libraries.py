"""JavaScript libraries that the dashboard serves: files in a folder each, with what they are in source.toml."""

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Final

FOLDER: Final = "extender/web/vendor"


@dataclass(frozen=True, slots=True)
class PageLibrary:
    """A library of the dashboard; `sha256` is that of its program, as its publisher packs it."""

    name: str
    version: str
    licence: str
    sha256: str


def served(site: Path) -> list[PageLibrary]:
    """Return the libraries in the folder of Python's packages of an image: none where it has no dashboard."""
    return [_read(path) for path in sorted((site / FOLDER).glob("*/source.toml"))]


def _read(path: Path) -> PageLibrary:
    source = tomllib.loads(path.read_text())
    program = next(name for name in source["sha256"] if name.endswith(".js"))
    return PageLibrary(source["package"], source["version"], source["license"], source["sha256"][program])
