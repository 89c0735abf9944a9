"""An image of kube-scheduler from a program built here, for clusters that cannot reach registry.k8s.io."""

import shutil
import subprocess
from pathlib import Path
from typing import Final

from images import layers, oci, parts

REPOSITORY: Final = "registry.k8s.io/kube-scheduler"

_PLACE: Final = "usr/local/bin/kube-scheduler"


def image(program: Path, architecture: str, folder: Path) -> oci.Image:
    """Make the image of a statically linked kube-scheduler; `folder` keeps its layer."""
    version = subprocess.run([program, "--version"], check=True, capture_output=True, text=True).stdout.split()[-1]
    tree = folder / "scheduler"
    (tree / _PLACE).parent.mkdir(parents=True)
    shutil.copy(program, tree / _PLACE)
    settings = {
        "Entrypoint": [f"/{_PLACE}"],
        "Env": [parts.PATH],
        "User": parts.USER,
        "WorkingDir": "/",
        "Labels": parts.labels("kube-scheduler", "Kubernetes' scheduler", version, ""),
    }
    return oci.Image(
        f"{REPOSITORY}:{version}", architecture, settings, [layers.pack(tree, folder / "scheduler.tar.gz", level=1)]
    )
