"""A folder as an OCI image layout archive, the form that `ctr images import` takes."""

import gzip
import hashlib
import io
import json
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def write(root: Path, target: Path, reference: str, settings: Mapping[str, Any]) -> None:
    """Pack the folder `root` as the one layer of image `reference`; `settings` are its Cmd or Entrypoint."""
    layer = _layer(root)
    packed = gzip.compress(layer, 1, mtime=0)
    environment = ["PATH=/usr/local/bin:/usr/bin:/bin:/sbin"]
    config = _json(
        {
            "architecture": "amd64",
            "os": "linux",
            "config": {**settings, "Env": environment},
            "rootfs": {"type": "layers", "diff_ids": [_digest(layer)]},
        }
    )
    manifest = _json(
        {
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": _descriptor("application/vnd.oci.image.config.v1+json", config),
            "layers": [_descriptor("application/vnd.oci.image.layer.v1.tar+gzip", packed)],
        }
    )
    index = _descriptor("application/vnd.oci.image.manifest.v1+json", manifest)
    index["annotations"] = {"io.containerd.image.name": reference, "org.opencontainers.image.ref.name": "1"}
    files = {
        "oci-layout": b'{"imageLayoutVersion":"1.0.0"}',
        "index.json": _json({"schemaVersion": 2, "manifests": [index]}),
    }
    _pack(target, files | {f"blobs/sha256/{_digest(blob)[7:]}": blob for blob in (config, manifest, packed)})


def _layer(root: Path) -> bytes:
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name in sorted(path.name for path in root.iterdir()):
            archive.add(root / name, name, filter=_root_owned)
    return raw.getvalue()


def _root_owned(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = "root"
    entry.mtime = 0
    return entry


def _pack(target: Path, files: Mapping[str, bytes]) -> None:
    with tarfile.open(target, "w") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))


def _descriptor(kind: str, blob: bytes) -> dict[str, Any]:
    return {"mediaType": kind, "digest": _digest(blob), "size": len(blob)}


def _digest(blob: bytes) -> str:
    return "sha256:" + hashlib.sha256(blob).hexdigest()


def _json(document: Mapping[str, Any]) -> bytes:
    return json.dumps(document, sort_keys=True).encode()
