"""The CDI specification of this node's cards, for nodes without NVIDIA's container toolkit.

Format: https://github.com/cncf-tags/container-device-interface/blob/main/SPEC.md. Version 0.5.0 has all that is
used, and the first containerd 1.7 refuses newer ones.
"""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from deviceplugin.kubelet.messages import Mount
from vgpu.adapters import durable_files
from vgpu.adapters.nvml.records import Gpu

KIND: Final = "vgpu.io/gpu"
FOLDER: Final = Path("/var/run/cdi")
FILE: Final = "vgpu.io-gpu.json"

_VERSION: Final = "0.5.0"
_READ_ONLY: Final = ["ro", "nosuid", "nodev", "rbind", "rprivate"]
_MODE: Final = 0o644


def specification(gpus: Iterable[Gpu], control_nodes: Sequence[str], mounts: Iterable[Mount]) -> dict[str, Any]:
    """Return the specification: one device for each card, by its UUID, and what all of them need."""
    return {
        "cdiVersion": _VERSION,
        "kind": KIND,
        "devices": [
            {"name": gpu.card.uuid, "containerEdits": {"deviceNodes": [{"path": f"/dev/nvidia{gpu.minor}"}]}}
            for gpu in gpus
        ],
        "containerEdits": {
            "deviceNodes": [{"path": path} for path in control_nodes],
            "mounts": [_mount(mount) for mount in mounts],
        },
    }


def _mount(mount: Mount) -> dict[str, Any]:
    return {"hostPath": str(mount.host_path), "containerPath": mount.container_path, "options": _READ_ONLY}


class SpecificationFile:
    """The file that a container runtime reads before it creates a container."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE
        self._written = b""

    def write(self, gpus: Sequence[Gpu], control_nodes: Sequence[str], mounts: Sequence[Mount]) -> None:
        """Write the file if its content changes, or if the file is missing. Raises OSError.

        Without a card nothing is written: a specification without devices is invalid.
        """
        content = json.dumps(specification(gpus, control_nodes, mounts), indent=1).encode()
        if not gpus or (content == self._written and self._path.exists()):
            return
        self._path.parent.mkdir(parents=True, exist_ok=True)
        durable_files.write(self._path, content, _MODE)
        self._written = content


def remove(folder: Path) -> None:
    """Remove the specification. Raises OSError."""
    (folder / FILE).unlink(missing_ok=True)
