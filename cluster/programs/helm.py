"""Helm, built from the Go module proxy at the version that cluster/programs/helm/go.mod pins.

`python -m cluster.programs.helm` builds it ahead of time: two minutes on two cores, once.
"""

from pathlib import Path

from cluster import progress
from cluster.programs import pinned

PROGRAM = "helm"
PROGRAMS = pinned.Programs("Helm", "helm", Path(__file__).parent / "helm", (f"helm.sh/helm/v4/cmd/{PROGRAM}",))


def ensure() -> Path:
    """Path of the program, built now if need be; raises missing.Missing."""
    return PROGRAMS.ensure() / PROGRAM


def main() -> None:
    progress.say(f"Helm: {ensure()}")


if __name__ == "__main__":
    main()
