"""The containerd of a node: Debian's 1.6, or 2.x, built from the Go module proxy at the version in containerd/go.mod.

`python -m cluster.programs.containerd` builds 2.x ahead of time: a minute on two cores, once.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from cluster import missing, progress
from cluster.programs import pinned

_MODULE = "github.com/containerd/containerd/v2"

PROGRAMS = pinned.Programs(
    "containerd",
    "containerd",
    Path(__file__).parent / "containerd",
    tuple(f"{_MODULE}/cmd/{program}" for program in ("containerd", "ctr", "containerd-shim-runc-v2")),
    tags="no_btrfs,no_devmapper,no_zfs",  # nodes have overlayfs
)


class ContainerdMajor(StrEnum):
    """Major versions of containerd that nodes can run."""

    DEBIAN = "1"
    PINNED = "2"


@dataclass(frozen=True, slots=True)
class InstalledContainerd:
    """containerd, its client and its shim.

    Attributes:
        major: decides which configuration it reads.
        folder: of its programs; None if they are installed as a package.
    """

    major: ContainerdMajor
    folder: Path | None

    def program(self, name: str) -> Path:
        """Path of `containerd` or `ctr`."""
        return self.folder / name if self.folder else Path(missing.which(name) or name)

    def environment(self) -> Mapping[str, str]:
        """Variables with which containerd finds its own shim: PATH is searched before containerd's own folder."""
        if self.folder is None:
            return {}
        return {"PATH": os.pathsep.join([str(self.folder), os.environ.get("PATH", os.defpath)])}


def ensure(major: ContainerdMajor) -> InstalledContainerd:
    """Return this containerd, built now if need be; raises missing.Missing."""
    return InstalledContainerd(major, PROGRAMS.ensure() if major is ContainerdMajor.PINNED else None)


def main() -> None:
    progress.say(f"containerd: {PROGRAMS.ensure()}")


if __name__ == "__main__":
    main()
