"""Prometheus and promtool, built from the Go module proxy at the version that cluster/programs/prometheus/go.mod pins.

`python -m cluster.programs.prometheus` builds them ahead of time: six minutes on two cores, once.
"""

from pathlib import Path

from cluster import progress
from cluster.programs import pinned

PROGRAMS = pinned.Programs(
    "Prometheus",
    "prometheus",
    Path(__file__).parent / "prometheus",
    ("github.com/prometheus/prometheus/cmd/prometheus", "github.com/prometheus/prometheus/cmd/promtool"),
    tags="remove_all_sd",  # without service discovery: a third of Prometheus' code is clients of clouds
)


def main() -> None:
    progress.say(f"Prometheus: {PROGRAMS.ensure()}")


if __name__ == "__main__":
    main()
