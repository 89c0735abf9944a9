"""The Helm chart as it is published: with real files in place of links, its version, and the digests beside it."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from release import archives, manifests

CHART: Final = manifests.MANIFESTS / "helm" / "vgpushare"


def write(target: Path, scratch: Path, tag: str) -> None:
    """Write the chart's archive, as `helm package` lays it out; `scratch` is used meanwhile."""
    for path in archives.walk(CHART):
        copied = scratch / path.relative_to(CHART)
        copied.parent.mkdir(parents=True, exist_ok=True)
        copied.write_text(manifests.stamp(path.read_text(), tag))
    described = scratch / "Chart.yaml"
    described.write_text(versioned(described.read_text(), tag))
    archives.write(target, scratch, CHART.name, left_out=["kustomization.yaml", ".helmignore"])


def versioned(text: str, tag: str) -> str:
    """Return Chart.yaml with a version."""
    return re.sub(r"^(version|appVersion): .*$", rf"\g<1>: {tag}", text, flags=re.MULTILINE)


def digest_values(digests: Mapping[str, str]) -> str:
    """Return values that pin the images by their digests."""
    lines = (f'    {part}: "{digest}"\n' for part, digest in sorted(digests.items()))
    return f"# helm install -f: the images of this release, by their digests.\nimage:\n  digests:\n{''.join(lines)}"
