"""Racks: the pods of one job are packed into few racks, or spread over many, as far as nodes with room allow (ADR 82).

A node with a worse tier comes after all nodes with a better one, whatever the packing policy says. No node is refused.
"""

from collections import Counter
from collections.abc import Iterable, Mapping

from vgpu.domain.asks.policy import RackPolicy
from vgpu.domain.identifiers import NodeName


def tiers(policy: RackPolicy | None, racks: Mapping[NodeName, str], used: Iterable[str]) -> dict[NodeName, int]:
    """Return the tier of each node, 0 the best; empty where racks do not matter.

    Args:
        policy: of the pod.
        racks: the rack of each node that the pod may get; empty where it is not known.
        used: the racks of the job's other pods, one for each pod.
    """
    counts = Counter(rack for rack in used if rack)
    if policy is None or not counts:
        return {}
    if policy is RackPolicy.SPREAD:
        unknown = max(counts.values()) + 1
        return {node: counts[rack] if rack else unknown for node, rack in racks.items()}
    most = max(counts.values())
    return {node: most - counts[rack] for node, rack in racks.items()}
