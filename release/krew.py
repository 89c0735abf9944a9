"""Makes krew's archive, and the manifest with its checksum: `python -m release.krew OUT [URL]`.

Without a URL the manifest serves for `kubectl krew install --manifest vgpu.yaml --archive vgpu.tar.gz` only. Equal
files give an equal archive.
"""

import argparse
import hashlib
from pathlib import Path
from typing import Final

from release import archives, identity

HERE: Final = identity.ROOT / "manifests" / "krew"
MANIFEST: Final = "vgpu.yaml"
NO_VERSION: Final = "v0.0.0"
NO_CHECKSUM: Final = "0" * 64
NO_URL: Final = "https://example.invalid/vgpushare"


def manifest(packed: bytes, url: str, tag: str) -> str:
    """Return the manifest of an archive that is published under a URL, in krew's spelling of a version."""
    text = (HERE / MANIFEST).read_text().replace(NO_CHECKSUM, hashlib.sha256(packed).hexdigest())
    return text.replace(NO_VERSION, f"v{tag}").replace(NO_URL, url)


def write(folder: Path, url: str, tag: str) -> None:
    """Write both files into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    packed = folder / "vgpu.tar.gz"
    archives.write(packed, HERE, "vgpu", left_out=[MANIFEST])
    (folder / MANIFEST).write_text(manifest(packed.read_bytes(), url or NO_URL, tag))


def main() -> None:
    """Write both files of this checkout's version into a folder."""
    parser = argparse.ArgumentParser(prog="python -m release.krew", description="The kubectl plugin, for krew.")
    parser.add_argument("out", type=Path, metavar="OUT", help="folder of the archive and its manifest")
    parser.add_argument("url", nargs="?", default="", metavar="URL", help="where the archive will be published")
    arguments = parser.parse_args()
    write(arguments.out, arguments.url, identity.of_checkout().tag)


if __name__ == "__main__":
    main()
