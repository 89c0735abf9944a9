"""The kustomize component of a build: it gives images their tag, so that applying another version changes the pods."""

from collections.abc import Mapping

from images import parts


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
