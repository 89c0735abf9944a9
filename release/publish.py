"""Everything that a publisher uploads, in one folder. The same commit gives the same bytes.

- vgpushare-VERSION-*.whl, vgpushare-VERSION.tar.gz: for pip, and the source
- vgpushare-PART-TAG.tar: an image for all architectures, as an OCI archive
- vgpushare-PART-TAG-ARCHITECTURE.cdx.json: its bill of materials
- vgpushare-TAG.tgz, values-digests.yaml: the Helm chart, and values that pin the images
- vgpushare-manifests-TAG.tar.gz: kustomizations, with a component that pins the images
- vgpushare-docs-TAG.tar.gz: the documents as a site
- vgpu.tar.gz, vgpu.yaml: the kubectl plugin, for krew
- images.txt, notes.md, and SHA256SUMS, which is written last
"""

import hashlib
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from images import debian, kustomization, oci, parts, sbom
from images.build import Builder, BuiltImage
from release import archives, chart, krew, manifests, notes, signing, site
from release.identity import ROOT, BuildIdentity

CHECKSUMS: Final = "SHA256SUMS"
PINNED: Final = "components/pinned-images"


def publish(
    out: Path,
    source: BuildIdentity,
    builder: Builder,
    architectures: Sequence[str],
    krew_url: str,
    say: Callable[[str], None],
) -> None:
    """Write everything into `out`, which must be empty; `say` takes what is being made, for people.

    Raises MissingSection or UnassignedChanges before anything is written, and PackageError, IncompleteImage or
    CalledProcessError later.
    """
    noted = notes.of(_text("CHANGELOG.md"), source.version, _text("manifests/README.md"))
    out.mkdir(parents=True, exist_ok=True)
    (out / "notes.md").write_text(noted)
    say("source")
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        _source_distribution(out)
        digests = _images(out, folder, source, builder, architectures, say)
        (out / "images.txt").write_text(
            "".join(f"vgpushare-{part}:{source.tag} {digest}\n" for part, digest in sorted(digests.items()))
        )
        say("documents, chart, manifests, plugin for krew")
        site.write(out / site.archive(source.tag), folder / "site")
        chart.write(out / f"vgpushare-{source.tag}.tgz", folder / "chart", source.tag)
        (out / "values-digests.yaml").write_text(chart.digest_values(digests))
        _manifests(out, folder / "manifests", source.tag, digests)
    krew.write(out, krew_url, source.tag)
    (out / CHECKSUMS).write_text(checksums(out))


def _text(name: str) -> str:
    return (ROOT / name).read_text()


def checksums(folder: Path) -> str:
    """Return the SHA-256 of each file but the checksums and their signature, as `sha256sum --check` reads it."""
    found = {path.name: path for path in folder.iterdir() if path.name not in (CHECKSUMS, CHECKSUMS + signing.SUFFIX)}
    return "".join(f"{_sha256(found[name])}  {name}\n" for name in sorted(found))


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _source_distribution(out: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", str(out)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)


def _images(
    out: Path,
    scratch: Path,
    source: BuildIdentity,
    builder: Builder,
    architectures: Sequence[str],
    say: Callable[[str], None],
) -> Mapping[str, str]:
    """Write images, bills of materials and wheels; return the digest of each part's image for all architectures."""
    made: dict[str, list[BuiltImage]] = {part.name: [] for part in parts.PARTS}
    for architecture in architectures:
        say(f"wheel and images for {architecture}")
        folder = scratch / architecture
        folder.mkdir()
        for built in builder.images(architecture, folder, source):
            made[built.part.name].append(built)
            sbom.validate(built.materials)
            name = f"{built.part.repository}-{source.tag}-{debian.ARCHITECTURES[architecture]}.cdx.json"
            (out / name).write_text(built.materials)
        for wheel in folder.glob("*.whl"):
            shutil.copy(wheel, out)
    return {part: _archive(out, source.tag, built) for part, built in made.items()}


def _archive(out: Path, tag: str, built: Sequence[BuiltImage]) -> str:
    images = [of_architecture.image for of_architecture in built]
    oci.write_multiple(images, out / f"{built[0].part.repository}-{tag}.tar")
    return oci.index_digest(images)


def _manifests(out: Path, folder: Path, tag: str, digests: Mapping[str, str]) -> None:
    manifests.copy(folder, tag)
    pinned = folder / PINNED
    pinned.mkdir()
    (pinned / "kustomization.yaml").write_text(kustomization.component(tag, digests))
    archives.write(out / f"vgpushare-manifests-{tag}.tar.gz", folder, "manifests")
