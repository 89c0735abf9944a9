"""Kubernetes' own programs, built from the Go module proxy at the version cluster/kube/go.mod pins.

They are kept outside the checkout, in a folder named by the hash of go.mod; `KUBEBUILDER_ASSETS` is used instead where
it holds all of them. `python -m cluster.binaries` builds them ahead of time.
"""

import contextlib
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from cluster import golang, missing, progress

PROGRAMS = ("kube-apiserver", "kube-scheduler", "kube-controller-manager", "kubelet", "kubectl")
MODULE = Path(__file__).parent / "kube"
REPOSITORY = Path(__file__).parents[1]

_VERSION_PACKAGE = "k8s.io/component-base/version"


def ensure() -> Path:
    """Folder that holds all of PROGRAMS, built now if need be; raises missing.Missing with what is lacking."""
    reasons = missing.reasons([REPOSITORY, cache(), Path(sys.executable).resolve()])
    if reasons:
        raise missing.Missing(reasons)
    packages = missing.packages()
    if packages:
        progress.say(f"installing {' '.join(packages)}")
        missing.install(packages)
    return _provided() or _built()


def _complete(folder: Path) -> bool:
    return all((folder / program).exists() for program in PROGRAMS)


def _provided() -> Path | None:
    folder = os.environ.get("KUBEBUILDER_ASSETS")
    return Path(folder) if folder and _complete(Path(folder)) else None


def _built() -> Path:
    target = cache() / f"kube-{hashlib.sha256((MODULE / 'go.mod').read_bytes()).hexdigest()[:12]}"
    if not _complete(target):
        _build(target)
    return target


def cache() -> Path:
    """Folder of the built programs, which outlives a checkout."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "vgpushare"


def _build(target: Path) -> None:
    go = golang.find(MODULE)
    target.parent.mkdir(parents=True, exist_ok=True)
    progress.say(f"building Kubernetes {_version()} into {target}: five minutes on two cores, once")
    scratch = Path(tempfile.mkdtemp(dir=target.parent, prefix=f"{target.name}."))
    command: list[str | Path] = [
        go,
        "build",
        "-trimpath",
        "-o",
        f"{scratch}/",
        "-ldflags",
        _linker_flags(),
        *_packages(),
    ]
    done = subprocess.run(command, cwd=MODULE, env=golang.environment(), stdin=subprocess.DEVNULL, check=False)
    if done.returncode:
        shutil.rmtree(scratch)
        raise missing.Missing([f"a built Kubernetes (go build ended with {done.returncode})"])
    with contextlib.suppress(OSError):  # another process has built the same folder meanwhile
        scratch.rename(target)
    shutil.rmtree(scratch, ignore_errors=True)
    target.chmod(0o755)
    progress.say("Kubernetes is built")


def _version() -> str:
    found = re.search(r"^\s*k8s\.io/kubernetes (v\S+)", (MODULE / "go.mod").read_text(), re.MULTILINE)
    if found is None:
        raise missing.Missing([f"the version of k8s.io/kubernetes in {MODULE}/go.mod"])
    return found[1]


def _linker_flags() -> str:
    major, minor, *_ = _version().removeprefix("v").split(".")
    values = {"gitVersion": _version(), "gitMajor": major, "gitMinor": minor}
    return "-s -w " + " ".join(f"-X {_VERSION_PACKAGE}.{key}={value}" for key, value in values.items())


def _packages() -> list[str]:
    return [f"k8s.io/kubernetes/cmd/{program}" for program in PROGRAMS]


def main() -> None:
    progress.say(f"Kubernetes: {ensure()}")


if __name__ == "__main__":
    main()
