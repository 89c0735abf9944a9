"""Where a container finds vgpushare's files. The kubelet mounts a pod's own volumes after them, and so over them."""

import posixpath
from typing import Final

# The loaders of glibc and of Nix (nixpkgs, dont-use-system-ld-so-preload.patch) read one each.
PRELOADS: Final = ("/etc/ld.so.preload", "/etc/ld-nix.so.preload")
FILES: Final = "/run/vgpu"
LIBRARY_FOLDER: Final = "/usr/local/vgpu"

# NVIDIA's container toolkit may be set up to hand over the cards that are mounted here, by UUID.
_VISIBLE_DEVICES: Final = "/run/nvidia-container-devices"
RESERVED: Final = (*PRELOADS, FILES, LIBRARY_FOLDER, _VISIBLE_DEVICES)


def is_reserved(path: str) -> bool:
    """Whether a volume mounted at `path` would replace one of vgpushare's files, or choose cards."""
    cleaned = posixpath.normpath(f"/{path.lstrip('/')}")
    at = "/run" + cleaned.removeprefix("/var/run") if cleaned.startswith("/var/run/") else cleaned
    return any(at == reserved or at.startswith(f"{reserved}/") for reserved in RESERVED)
