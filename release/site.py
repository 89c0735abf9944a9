"""The documents as a searchable site, as `make docs` builds it, in one archive.

A release is read without the repository: the documents must be among its files. MkDocs writes SOURCE_DATE_EPOCH in
place of the time of the build.
"""

import subprocess
from pathlib import Path
from typing import Final

from release import archives
from release.identity import ROOT

PROGRAM: Final = ROOT / "build" / "docs" / "bin" / "mkdocs"


class NoProgram(Exception):
    """The environment of `make docs` is not there."""


def archive(tag: str) -> str:
    """Return the name of the archive."""
    return f"vgpushare-docs-{tag}.tar.gz"


def write(target: Path, scratch: Path) -> None:
    """Write the archive; `scratch` holds the site meanwhile. Raises NoProgram and CalledProcessError."""
    if not PROGRAM.exists():
        raise NoProgram(f"there is no {PROGRAM.relative_to(ROOT)}: run `make docs` once")
    command: list[str | Path] = [PROGRAM, "build", "--quiet", "--strict", "--site-dir", scratch]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    archives.write(target, scratch, "vgpushare-docs")
