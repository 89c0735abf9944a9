"""The limiter and the arbiter of earlier releases, into `build/bench/limiter-VERSION`.

    python -m benchmarks.programs.old_limiters

They are built from git, each by its own build, and carried to the machine with the GPU, which has no git.
"""

import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.programs import build
from limiter.installation import ARBITER, LIBRARY
from vgpu.domain.formats import region

ROOT: Final = Path(__file__).parents[2]
COMMITS: Final = {"0.1.0": "b3ce806a", "0.2.0": "v0.2.0"}  # 0.1.0 has no tag


@dataclass(frozen=True, slots=True)
class OldLimiter:
    """An earlier release's files. They may not be there."""

    version: str

    @property
    def folder(self) -> Path:
        """The folder of both files."""
        return build.OUT / f"limiter-{self.version}"

    @property
    def library(self) -> Path:
        """What programs load."""
        return self.folder / LIBRARY

    @property
    def arbiter(self) -> Path:
        """The arbiter of that release."""
        return self.folder / ARBITER

    def region(self) -> bytes:
        """Return the region that its library reads, as the device plugin makes it."""
        if self.version == "0.1.0":
            return region.FIRST_HEADER.ljust(region.size_in(region.FIRST_HEADER), b"\0")
        return region.new().ljust(region.SIZE, b"\0")

    @property
    def is_built(self) -> bool:
        """Whether both files are there."""
        return self.library.exists() and self.arbiter.exists()


def build_old(version: str) -> None:
    """Build a release's limiter. Raises CalledProcessError where git does not have the commit, or it does not build."""
    made = OldLimiter(version)
    with tempfile.TemporaryDirectory() as folder:
        archive = Path(folder) / "tree.tar"
        subprocess.run(
            ["git", "archive", "-o", str(archive), COMMITS[version], "limiter", "vgpu"], cwd=ROOT, check=True
        )
        subprocess.run(["tar", "-xf", str(archive), "-C", folder], check=True)
        subprocess.run([sys.executable, "-m", "limiter.build"], cwd=folder, check=True)
        made.folder.mkdir(parents=True, exist_ok=True)
        for path in (made.library, made.arbiter):
            fresh = path.with_suffix(".fresh")
            fresh.write_bytes((Path(folder) / "limiter" / path.name).read_bytes())
            fresh.chmod(0o755)
            fresh.rename(path)


if __name__ == "__main__":
    for version in COMMITS:
        build_old(version)
