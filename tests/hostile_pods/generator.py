"""Hostile pods from seeds: the same seed always makes the same pod.

A pod begins as one of the valid pods, and none to three mutations change it. One pod in eight stays valid: valid pods
must go on running beside the others.
"""

import random
from typing import Final

from tests.hostile_pods.case import Case, Draft
from tests.hostile_pods.mutations import BREAKING, MUTATIONS
from tests.hostile_pods.valid import PODS

_COUNTS: Final = (0, 1, 1, 1, 1, 2, 2, 3)
_FIRST: Final = {valid.__name__.strip("_").replace("_", "-"): valid for valid in PODS}
_CHANGES: Final = {mutation.name: mutation.change for mutation in MUTATIONS}


def make(seed: int) -> Case:
    """Return the pod of a seed."""
    chance = random.Random(seed)
    first = chance.choice(PODS).__name__.strip("_").replace("_", "-")
    weights = [mutation.weight for mutation in MUTATIONS]
    changes = chance.choices(MUTATIONS, weights, k=chance.choice(_COUNTS))
    return compose(seed, first, *_ordered([change.name for change in changes]))


def compose(seed: int, first: str, *changes: str) -> Case:
    """Return a pod by the names of the valid pod and of its mutations, as `Case.changes` lists them."""
    chance = random.Random(f"{seed} {first}")
    draft = Draft(_FIRST[first](chance))
    for name in changes:
        _CHANGES[name](chance, draft)
    return Case(seed, draft.manifest, draft.raw, (first, *changes))


def _ordered(changes: list[str]) -> list[str]:
    """Return the mutations with at most one of those that leave no pod for others to change, at the end."""
    last = [name for name in changes if name in BREAKING]
    return [name for name in changes if name not in BREAKING] + last[:1]
