"""In which order kube-scheduler should prefer the nodes that can take a pod."""

import hashlib
from collections.abc import Iterable, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Final

from vgpu.domain.asks.policy import PackingPolicy
from vgpu.domain.cards.share import NodeState
from vgpu.domain.identifiers import NodeName
from vgpu.placement import room
from vgpu.placement.policies import POLICIES
from vgpu.placement.question import NO_CARDS, Question

NO_TIERS: Final[Mapping[NodeName, int]] = MappingProxyType({})


def rank(
    nodes: Iterable[NodeState],
    policy: PackingPolicy,
    question: Question = NO_CARDS,
    tiers: Mapping[NodeName, int] = NO_TIERS,
) -> list[NodeName]:
    """Return the names of the nodes, best first; those in a lower one of `tiers` before all in higher ones."""
    row = POLICIES[policy]
    costs = {node.name: row.cost(node, room.room_of(node, question.models), question) for node in nodes}
    return by_cost(costs, row.tolerance(question.demand.weights), tiers)


def by_cost(costs: Mapping[NodeName, int], tolerance: int, tiers: Mapping[NodeName, int] = NO_TIERS) -> list[NodeName]:
    """Return names by their tiers, then by their costs. Costs above the least by at most the tolerance are equal to it.

    Equal nodes come in a fixed order, a hash of the names: it mixes racks, and it fills one node before the next.
    """
    best = min((tiers.get(name, 0) for name in costs), default=0)
    equal = min((cost for name, cost in costs.items() if tiers.get(name, 0) == best), default=0) + tolerance
    return sorted(costs, key=lambda name: (tiers.get(name, 0), max(costs[name], equal), fixed_order(name)))


def first(costs: Mapping[NodeName, int], tolerance: int) -> NodeName:
    """Return the first name of `by_cost`; there must be one."""
    equal = min(costs.values()) + tolerance
    return min((name for name, cost in costs.items() if cost <= equal), key=fixed_order)


@lru_cache(maxsize=1 << 14)
def fixed_order(name: NodeName) -> bytes:
    """Return a hash of a node's name, the same in every process: the key that orders equal nodes."""
    return hashlib.blake2b(name.encode(), digest_size=8).digest()
