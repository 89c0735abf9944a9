"""The CDI specification of this node's cards.

Format: https://github.com/cncf-tags/container-device-interface/blob/main/SPEC.md. Version 0.5.0 has all that is used,
and every runtime with CDI reads it.
"""

import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from deviceplugin.kubelet.messages import Mount
from vgpu.adapters.nvml.records import Gpu
from vgpu.node.cards.inventory import Inventory

KIND: Final = "vgpu.io/gpu"
FOLDER: Final = Path("/var/run/cdi")
FILE: Final = "vgpu.io-gpu.json"

_VERSION: Final = "0.5.0"
_READ_ONLY: Final = ["ro", "nosuid", "nodev", "rbind", "rprivate"]


def specification(
    gpus: Iterable[Gpu], control_nodes: Sequence[str], mounts: Iterable[Mount], dev: Path
) -> dict[str, Any]:
    """Return the specification: one device for each card, by its UUID, and what all of them need."""
    return {
        "cdiVersion": _VERSION,
        "kind": KIND,
        "devices": [
            {"name": gpu.card.uuid, "containerEdits": {"deviceNodes": [{"path": str(dev / f"nvidia{gpu.minor}")}]}}
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
    """The file that a container runtime reads before each container it creates."""

    def __init__(
        self, folder: Path, inventory: Inventory, control_nodes: Sequence[str], mounts: Sequence[Mount]
    ) -> None:
        self._path = folder / FILE
        self._inventory = inventory
        self._control_nodes = control_nodes
        self._mounts = mounts
        self._written = ""

    async def run(self) -> None:
        """Write the file at every change of the cards. Raises OSError."""
        while True:
            seen = self._inventory.state
            self.write(seen.gpus)
            await self._inventory.wait(seen)

    def write(self, gpus: Sequence[Gpu]) -> None:
        """Replace the file, if these cards change it. Raises OSError."""
        content = json.dumps(specification(gpus, self._control_nodes, self._mounts, Path("/dev")), indent=1)
        if content == self._written:
            return
        self._path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = self._path.with_suffix(".unfinished")  # no name of a specification: runtimes do not read it
        with unfinished.open("w") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(self._path)
        self._written = content


def remove(folder: Path) -> None:
    """Remove the specification."""
    (folder / FILE).unlink(missing_ok=True)
