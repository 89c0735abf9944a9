"""Release notes: what CHANGELOG.md says about a version, and how to upgrade to it and back.

They are read alone: a link to a file of the source becomes the file's name.
"""

import re
from typing import Final

from vgpu.domain import build_version

UNRELEASED: Final = "Unreleased"
_FILE_LINK: Final = re.compile(r"\[([^\]]+)\]\((?![a-z]+://)([^)\s#]*)[^)\s]*\)")
_FILES: Final = """
## Files

`SHA256SUMS` has the checksum of every file, `images.txt` the digest of every image. The `.cdx.json` files are the
bills of materials of the images. The manifests are installed as their `README.md` says. The documents are in
`vgpushare-docs-{tag}.tar.gz`: open `index.html`; `docs/watch.md` is `watch.html` there, `manifests/README.md` is
`install.html`.

Check where the files come from, and that they are whole, in this order:

    gpg --verify SHA256SUMS.asc SHA256SUMS
    sha256sum --check --strict --ignore-missing SHA256SUMS

The first command must say "Good signature", and its fingerprint must be the publisher's. Get that fingerprint and the
key over a way that you trust, not from where these files are. The images have no signature of their own: `images.txt`,
which has their digests, is among the files of `SHA256SUMS`.

Without `SHA256SUMS.asc` the release is not signed, and the second command alone does not show where files come from:
who can replace a file can replace its checksum. Then get `SHA256SUMS` over a way that you trust, or build the tagged
commit again: `make release` of one commit writes the same bytes, with a key or without.

Copy each image with all its architectures: one architecture alone has another digest, which neither
`values-digests.yaml` nor the component `pinned-images` names.

    skopeo copy --all oci-archive:vgpushare-webhook-{tag}.tar docker://REGISTRY/vgpushare-webhook:{tag}
"""


class MissingSection(Exception):
    """A document has no section that the notes need."""


class UnassignedChanges(Exception):
    """The changelog of a release has changes that belong to no version."""


def of(changelog: str, version: str, manifests_readme: str) -> str:
    """Return the notes of a version.

    A release has a section of its own in the changelog, and nothing stands under Unreleased beside it; any other
    version has the one of what is not released yet. Raises MissingSection and UnassignedChanges.
    """
    is_release = ".dev" not in version
    changes = _section(changelog, "CHANGELOG.md", version if is_release else UNRELEASED)
    if is_release and _has_changes(changelog):
        raise UnassignedChanges(
            f"CHANGELOG.md has changes under {UNRELEASED}, which are in {version}: move them to its section"
        )
    upgrade = _section(manifests_readme, "manifests/README.md", "Upgrade and roll back")
    files = _FILES.format(tag=build_version.image_tag(version))
    return f"# vgpushare {version}\n\n{changes}\n\n## Upgrade and roll back\n\n{upgrade}\n{files}"


def _has_changes(changelog: str) -> bool:
    try:
        unreleased = _section(changelog, "CHANGELOG.md", UNRELEASED)
    except MissingSection:
        return False
    return any(line.strip() and not line.startswith("#") for line in unreleased.splitlines())


def _section(text: str, name: str, heading: str) -> str:
    """Return a section of a document, whose heading may have a number or a bracket before it, and more behind it."""
    pattern = rf"^## (?:\d+ |\[)?{re.escape(heading)}(?=[\]\s])[^\n]*\n(.*?)(?=^## |\Z)"
    found = re.search(pattern, text, re.MULTILINE | re.DOTALL)
    if found is None:
        raise MissingSection(f"{name} has no section {heading}")
    return _FILE_LINK.sub(_named, found[1].strip())


def _named(link: re.Match[str]) -> str:
    text, file = link[1], link[2]
    return text if not file or file in text else f"{text} ({file})"
