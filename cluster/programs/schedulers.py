"""kube-schedulers of other minor versions than the cluster's, each pinned by a go.mod in cluster/programs/schedulers/.

`python -m cluster.programs.schedulers` builds them ahead of time: three minutes each on two cores.
"""

from pathlib import Path

from cluster import progress
from cluster.programs import pinned

_PACKAGE = "k8s.io/kubernetes/cmd/kube-scheduler"
_FOLDER = Path(__file__).parent / "schedulers"

VERSIONS = tuple(sorted(folder.name for folder in _FOLDER.iterdir()))


def programs(version: str) -> pinned.Programs:
    """Return the kube-scheduler of one of VERSIONS."""
    module = _FOLDER / version
    exact = pinned.kubernetes_version(module)
    flags = pinned.kubernetes_flags(exact)
    return pinned.Programs(f"kube-scheduler {exact}", f"scheduler-{version}", module, (_PACKAGE,), flags)


def main() -> None:
    for version in VERSIONS:
        progress.say(f"kube-scheduler {version}: {programs(version).ensure()}")


if __name__ == "__main__":
    main()
