"""Release notes: what CHANGELOG.md says about a version, and where the upgrade is described."""

import re

UPGRADE = """
## Upgrade and roll back

manifests/README.md, in the archive of the manifests, says how, and from which version an upgrade is tested.
`SHA256SUMS` has the checksum of every file, `images.txt` the digest of every image.
"""


def of(changelog: str, version: str) -> str:
    """Return the notes of a version: its own section of the changelog, or the one of what is not released yet."""
    sections: dict[str, str] = dict(
        re.findall(r"^## \[?([^\s\]]+)\]?[^\n]*\n(.*?)(?=^## |\Z)", changelog, re.MULTILINE | re.DOTALL)
    )
    text = sections.get(version, sections.get("Unreleased", ""))
    return f"# vgpushare {version}\n\n{text.strip()}\n{UPGRADE}"
