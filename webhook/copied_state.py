"""Removes from a new pod what only a bound pod has: a copy of a live pod brings it along.

Backups are restored from live pods, `kubectl debug --copy-to` copies one, and people save manifests by `kubectl get`.
What was decided for the old pod, here or by another product's scheduler, says nothing about the new one, which is not
bound yet (docs/adr/0145).
"""

from collections.abc import Iterator
from typing import Final

from vgpu.domain import names
from vgpu.domain.asks import foreign_annotations, manifest
from vgpu.domain.json_types import Json
from vgpu.domain.problem import Problem

_REMOVED: Final = "was removed: it belongs to the pod that this one is a copy of"
_KEPT: Final = "stays as it was written when the pod was bound: leave it out of the manifest"


def removed(pod: Json) -> Iterator[Problem]:
    """Yield what `without` removes from a pod, for its owner to read."""
    for name in sorted(_of_another_pod(pod)):
        yield Problem(f"metadata.annotations[{name}]", "", _REMOVED)


def without(pod: Json) -> Json:
    """Return a new pod without annotations that are written when a pod is bound."""
    gone = _of_another_pod(pod)
    kept = {name: value for name, value in manifest.annotations(pod).items() if name not in gone}
    return {**pod, "metadata": {**pod["metadata"], "annotations": kept}} if gone else pod


def changed(old: Json, new: Json) -> Iterator[Problem]:
    """Yield what `kept` restores, for the pod's owner to read."""
    before, after = manifest.annotations(old), manifest.annotations(new)
    for name in sorted(_of_another_pod(old) | _of_another_pod(new)):
        if before.get(name) != after.get(name):
            yield Problem(f"metadata.annotations[{name}]", "", _KEPT)


def kept(old: Json, new: Json) -> Json:
    """Return a changed pod with these annotations as they were: the manifest of a copy is applied again."""
    restored = {name: value for name, value in manifest.annotations(old).items() if name in _of_another_pod(old)}
    others = manifest.annotations(without(new))
    if {**others, **restored} == manifest.annotations(new):
        return new
    return {**new, "metadata": {**new["metadata"], "annotations": {**others, **restored}}}


def _of_another_pod(pod: Json) -> frozenset[str]:
    """Return the annotations to remove; those of another product from pods that ask for GPUs here only."""
    present = manifest.annotations(pod).keys()
    found = present & set(names.STATE_ANNOTATIONS)
    theirs = present & foreign_annotations.STATE
    return frozenset(found | theirs if theirs and manifest.wants_gpu(pod) else found)
