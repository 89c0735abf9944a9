"""The version in the manifests: in a checkout they say `dev`; a build has a component, a release has stamped copies.

Both give images another tag, so that applying another version changes the pods.
"""

import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from images import parts
from release.identity import ROOT

UNSTAMPED: Final = "dev"
MANIFESTS: Final = ROOT / "manifests"

_IMAGES: Final = "|".join(part.repository for part in parts.PARTS)
_STAMPS: Final = (
    re.compile(rf"(?P<before>\b(?:{_IMAGES}):){UNSTAMPED}\b"),
    re.compile(rf"(?P<before>\bapp\.kubernetes\.io/version: ){UNSTAMPED}\b[^\n]*"),
    re.compile(rf"(?P<before>\bvgpu\.io/version: ){UNSTAMPED}\b"),
)


def component(tag: str, digests: Mapping[str, str] | None = None) -> str:
    """Return a kustomize component that gives every object the version `tag`, and images this tag or their digest.

    `digests` has the digest of a part's image by the part's name; without one the tag counts.
    """
    known = digests or {}
    named = (f"{{name: {part.repository}, {_chosen(tag, known.get(part.name))}}}" for part in parts.PARTS)
    images = "".join(f"  - {image}\n" for image in named)
    return f"""\
apiVersion: kustomize.config.k8s.io/v1alpha1
kind: Component
images:
{images}labels:
  - pairs:
      app.kubernetes.io/version: {tag}
patches:
  - target: {{kind: CustomResourceDefinition, name: gpunodes.vgpu.io}}
    patch: |-
      - {{op: add, path: /metadata/annotations/vgpu.io~1version, value: {tag}}}
"""


def _chosen(tag: str, digest: str | None) -> str:
    return f'digest: "{digest}"' if digest else f"newTag: {tag}"


def stamp(text: str, tag: str) -> str:
    """Return the text of a manifest with a version."""
    for pattern in _STAMPS:
        text = pattern.sub(rf"\g<before>{tag}", text)
    return text


def copy(target: Path, tag: str) -> None:
    """Write a copy of the manifests with a version; `target` must not exist."""
    shutil.copytree(MANIFESTS, target, ignore=shutil.ignore_patterns("__pycache__", "helm", "krew"))
    for path in target.rglob("*"):
        if path.suffix in (".yaml", ".md"):
            path.write_text(stamp(path.read_text(), tag))
