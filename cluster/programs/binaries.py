"""Kubernetes' own programs, built from the Go module proxy at the version cluster/programs/kube/go.mod pins.

`KUBEBUILDER_ASSETS` is used instead where it holds all of them. `python -m cluster.programs.binaries` builds them ahead
of time: five minutes on two cores.
"""

import os
import sys
from pathlib import Path

from cluster import missing, progress
from cluster.programs import pinned

PROGRAMS = ("kube-apiserver", "kube-scheduler", "kube-controller-manager", "kubelet", "kubectl")
REPOSITORY = Path(__file__).parents[2]

_MODULE = Path(__file__).parent / "kube"


def is_built() -> bool:
    """Whether `ensure` returns without building."""
    return _provided() is not None or _kubernetes().is_built()


def ensure() -> Path:
    """Folder that holds all of PROGRAMS, built now if need be; raises missing.Missing with what is lacking."""
    reasons = missing.reasons([REPOSITORY, pinned.cache(), Path(sys.executable).resolve()])
    if reasons:
        raise missing.Missing(reasons)
    packages = missing.packages()
    if packages:
        progress.say(f"installing {' '.join(packages)}")
        missing.install(packages)
    return _provided() or _kubernetes().ensure()


def _provided() -> Path | None:
    folder = Path(os.environ.get("KUBEBUILDER_ASSETS") or "/nonexistent")
    return folder if all((folder / program).exists() for program in PROGRAMS) else None


def _kubernetes() -> pinned.Programs:
    version = pinned.kubernetes_version(_MODULE)
    packages = [f"k8s.io/kubernetes/cmd/{program}" for program in PROGRAMS]
    return pinned.Programs(f"Kubernetes {version}", "kube", _MODULE, packages, pinned.kubernetes_flags(version))


def main() -> None:
    progress.say(f"Kubernetes: {ensure()}")


if __name__ == "__main__":
    main()
