"""The cgroup under which one kubelet keeps its pods, on either version of the hierarchy."""

from pathlib import Path

_ROOT = Path("/sys/fs/cgroup")
_INHERITED = (
    "cpuset.cpus",
    "cpuset.mems",
)  # cgroup v1: a new cpuset has no CPUs and no memory nodes, and refuses processes without them


def create(name: str) -> None:
    """Create the cgroup in every hierarchy; closing the cluster's namespace removes it."""
    for hierarchy in _hierarchies():
        (hierarchy / name).mkdir(exist_ok=True)
        for file in _INHERITED:
            if (hierarchy / file).exists():
                (hierarchy / name / file).write_text((hierarchy / file).read_text())


def _hierarchies() -> list[Path]:
    if (_ROOT / "cgroup.controllers").exists():
        return [_ROOT]
    return [path for path in _ROOT.iterdir() if path.is_dir() and not path.is_symlink() and path.name != "unified"]
