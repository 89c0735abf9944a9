"""In which order kube-scheduler should prefer the nodes that can take a pod."""

import hashlib
from collections.abc import Iterable, Sequence
from functools import lru_cache

from vgpu.placement.policies import COMPARATORS
from vgpu.policy import PackingPolicy
from vgpu.share import NodeState


def rank(nodes: Iterable[NodeState], policy: PackingPolicy) -> list[str]:
    """Return the names of the nodes, best first. Nodes that the policy finds equal come in a fixed order.

    The fixed order is a hash of the names: it mixes racks, and it fills one node before the next where scores tie.
    """
    key = COMPARATORS[policy].node
    return [node.name for node in sorted(nodes, key=lambda node: (key(node), fixed_order(node.name)))]


def scores(ranked: Sequence[str], best: int = 10) -> dict[str, int]:
    """Give the first node the score `best` and every other node a smaller one that falls with its rank, at least 0."""
    rest = max(1, len(ranked) - 1)
    return {name: best if n == 0 else (best - 1) * (rest - n) // rest for n, name in enumerate(ranked)}


@lru_cache(maxsize=1 << 14)
def fixed_order(name: str) -> bytes:
    """Return a hash of a node's name, the same in every process: the key that orders equal nodes."""
    return hashlib.blake2b(name.encode(), digest_size=8).digest()
