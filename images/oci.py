"""Documents of the OCI image format, and the archive that `ctr images import`, skopeo and crane read.

Format: https://github.com/opencontainers/image-spec. The same arguments give the same bytes.
"""

import hashlib
import io
import json
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from images.layers import ImageLayer

_TYPE = "application/vnd.oci.image."

Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Image:
    """One image of one architecture.

    Args:
        reference: name and tag in full, with the registry: containerd finds an imported image by it.
        architecture: in Go's terms: amd64, arm64.
        settings: `config` of the image configuration: Entrypoint, Cmd, Env, User, Labels.
        layers: from the lowest to the uppermost.
        created: RFC 3339 time; empty: none.
    """

    reference: str
    architecture: str
    settings: Mapping[str, Any]
    layers: Sequence[ImageLayer]
    created: str = ""

    @property
    def configuration(self) -> bytes:
        """The image configuration, whose digest is the image's ID."""
        content = {
            "architecture": self.architecture,
            "os": "linux",
            "config": dict(self.settings),
            "rootfs": {"type": "layers", "diff_ids": [layer.diff_id for layer in self.layers]},
        }
        return _json(content | ({"created": self.created} if self.created else {}))

    @property
    def manifest(self) -> bytes:
        """The image manifest, whose digest is that of a reference such as NAME@sha256:..."""
        return _json(
            {
                "schemaVersion": 2,
                "mediaType": f"{_TYPE}manifest.v1+json",
                "config": _descriptor("config.v1+json", self.configuration),
                "layers": [_layer_descriptor(layer) for layer in self.layers],
            }
        )

    @property
    def digest(self) -> str:
        """Digest of the manifest."""
        return _digest(self.manifest)

    @property
    def descriptor(self) -> Document:
        """Descriptor of the manifest, with the names under which tools import it."""
        return _descriptor("manifest.v1+json", self.manifest) | {
            "platform": {"architecture": self.architecture, "os": "linux"},
            "annotations": {
                "io.containerd.image.name": self.reference,
                "org.opencontainers.image.ref.name": self.reference.rpartition(":")[2],
            },
        }


def index(images: Sequence[Image]) -> bytes:
    """Return the index of an archive of these images."""
    manifests = [image.descriptor for image in images]
    return _json({"schemaVersion": 2, "mediaType": f"{_TYPE}index.v1+json", "manifests": manifests})


def index_of_architectures(images: Sequence[Image]) -> bytes:
    """Return the index of one image for several architectures, whose digest is that of the image in a registry."""
    manifests = [{key: value for key, value in image.descriptor.items() if key != "annotations"} for image in images]
    return _json({"schemaVersion": 2, "mediaType": f"{_TYPE}index.v1+json", "manifests": manifests})


def index_digest(images: Sequence[Image]) -> str:
    """Digest of one image for several architectures."""
    return _digest(index_of_architectures(images))


def write(images: Sequence[Image], target: Path) -> None:
    """Write an archive, an OCI image layout in a tar file; layers that images share are in it once."""
    _write(images, target, {"index.json": index(images)})


def write_multiple(images: Sequence[Image], target: Path) -> None:
    """Write an archive with one image for several architectures, which all have one reference."""
    inner = index_of_architectures(images)
    described = _descriptor("index.v1+json", inner) | {"annotations": images[0].descriptor["annotations"]}
    outer = _json({"schemaVersion": 2, "mediaType": f"{_TYPE}index.v1+json", "manifests": [described]})
    _write(images, target, {"index.json": outer, _blob(_digest(inner)): inner})


def _write(images: Sequence[Image], target: Path, indexes: Mapping[str, bytes]) -> None:
    documents = {"oci-layout": b'{"imageLayoutVersion":"1.0.0"}', **indexes}
    blobs = [blob for image in images for blob in (image.manifest, image.configuration)]
    documents |= {_blob(_digest(blob)): blob for blob in blobs}
    layers = {layer.digest: layer for image in images for layer in image.layers}
    with tarfile.open(target, "w") as archive:
        for name, content in documents.items():
            archive.addfile(_entry(name, len(content)), io.BytesIO(content))
        for layer in layers.values():
            with layer.path.open("rb") as blob:
                archive.addfile(_entry(_blob(layer.digest), layer.size), blob)


def _entry(name: str, size: int) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.size = size
    return entry


def _blob(digest: str) -> str:
    return f"blobs/{digest.replace(':', '/')}"


def _descriptor(kind: str, blob: bytes) -> Document:
    return {"mediaType": _TYPE + kind, "digest": _digest(blob), "size": len(blob)}


def _layer_descriptor(layer: ImageLayer) -> Document:
    return {"mediaType": f"{_TYPE}layer.v1.tar+gzip", "digest": layer.digest, "size": layer.size}


def _digest(blob: bytes) -> str:
    return f"sha256:{hashlib.sha256(blob).hexdigest()}"


def _json(document: Document) -> bytes:
    return json.dumps(document, sort_keys=True, separators=(",", ":")).encode()
