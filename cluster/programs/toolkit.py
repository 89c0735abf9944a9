"""NVIDIA's nvidia-ctk, built from the Go module proxy: it writes the CDI specification with which a test compares ours.

`python -m cluster.programs.toolkit` builds it ahead of time: a minute on two cores, once.
"""

from pathlib import Path

from cluster import progress
from cluster.programs import pinned

PROGRAMS = pinned.Programs(
    "NVIDIA's container toolkit",
    "toolkit",
    Path(__file__).parent / "toolkit",
    ("github.com/NVIDIA/nvidia-container-toolkit/cmd/nvidia-ctk",),
    linker_flags="-s -w -extldflags=-Wl,-z,lazy",  # it calls NVML, which is loaded later, by name
    uses_c=True,
)


def main() -> None:
    progress.say(f"NVIDIA's container toolkit: {PROGRAMS.ensure()}")


if __name__ == "__main__":
    main()
