"""Programs in Go that are built from the module proxy, at the versions that a go.mod pins.

They are kept outside the checkout, in a folder named by the hash of go.mod, which outlives the checkout.
"""

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cluster import missing, one_process, progress
from cluster.programs import golang

ATTEMPTS = 3  # at a build: a module proxy may be out of reach for a moment
PAUSE_S = 10.0


def cache() -> Path:
    """Folder of all built programs."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "vgpushare"


@dataclass(frozen=True, slots=True)
class Programs:
    """Programs of one Go module.

    Attributes:
        title: what is built, with its version where it matters: "Kubernetes v1.36.3".
        name: of the folder, before the hash.
        module: folder of go.mod, which pins the versions.
        packages: what is built; the last part of each is the program's name.
        linker_flags: of the Go linker.
        tags: build tags.
        uses_c: the program is linked with gcc.
    """

    title: str
    name: str
    module: Path
    packages: Sequence[str]
    linker_flags: str = "-s -w"
    tags: str = ""
    uses_c: bool = False

    @property
    def folder(self) -> Path:
        """Where the programs are, once they are built."""
        return cache() / f"{self.name}-{hashlib.sha256((self.module / 'go.mod').read_bytes()).hexdigest()[:12]}"

    def is_built(self) -> bool:
        """Whether the folder has all programs."""
        return all((self.folder / package.rpartition("/")[2]).exists() for package in self.packages)

    def ensure(self) -> Path:
        """Return the folder, after building what is missing; raises missing.Missing with what is lacking."""
        if not self.is_built():
            with one_process.at_a_time(self.folder.with_suffix(".lock")):
                if not self.is_built():
                    self._build()
        return self.folder

    def _build(self) -> None:
        go = golang.find(self.module)
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        progress.say(f"building {self.title} into {self.folder}: minutes on two cores, once")
        scratch = Path(tempfile.mkdtemp(dir=self.folder.parent, prefix=f"{self.folder.name}."))
        flags = ["-trimpath", "-ldflags", self.linker_flags, *(["-tags", self.tags] if self.tags else [])]
        command: list[str | Path] = [go, "build", *flags, "-o", f"{scratch}/", *self.packages]
        if status := self._run(command):
            shutil.rmtree(scratch)
            raise missing.Missing([f"a built {self.title} (go build ended with {status})"])
        shutil.rmtree(self.folder, ignore_errors=True)  # it may be there, and lack programs
        scratch.rename(self.folder)
        self.folder.chmod(0o755)
        progress.say(f"{self.title} is built")

    def _run(self, command: Sequence[str | Path]) -> int:
        """Run a build up to ATTEMPTS times, and return the last exit status. What was built and fetched is not lost."""
        for left in range(ATTEMPTS - 1, -1, -1):
            environment = golang.environment() | {"CGO_ENABLED": str(int(self.uses_c))}
            done = subprocess.run(command, cwd=self.module, env=environment, stdin=subprocess.DEVNULL, check=False)
            if done.returncode == 0 or not left:
                break
            progress.say(f"go build ended with {done.returncode}; again in {PAUSE_S:.0f} s, {left} more times at most")
            time.sleep(PAUSE_S)
        return done.returncode


def kubernetes_version(module: Path) -> str:
    """Return the version of Kubernetes that a go.mod pins, such as `v1.36.3`."""
    found = re.search(r"^(?:require)?\s*k8s\.io/kubernetes (v\S+)", (module / "go.mod").read_text(), re.MULTILINE)
    if found is None:
        raise missing.Missing([f"the version of k8s.io/kubernetes in {module}/go.mod"])
    return found[1]


def kubernetes_flags(version: str) -> str:
    """Return linker flags that tell programs of Kubernetes their version."""
    major, minor, *_ = version.removeprefix("v").split(".")
    values = {"gitVersion": version, "gitMajor": major, "gitMinor": minor}
    return "-s -w " + " ".join(f"-X k8s.io/component-base/version.{key}={value}" for key, value in values.items())
