"""Nodes that exist in a question only: the cluster autoscaler's picture of a node that it might add.

Such a node has no GPUNode. Its cards are read from the labels of GPU feature discovery, and from what the node would
offer of our resources. Labels cannot have spaces, so feature discovery writes dashes in the name of the product.
https://github.com/NVIDIA/k8s-device-plugin/tree/main/docs/gpu-feature-discovery
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from extender.protocol.wire import FullNode
from vgpu.domain import names, quantity
from vgpu.domain.asks.request import MAX_GPUS, PodRequest
from vgpu.domain.cards.device import Card
from vgpu.domain.cards.reasons import Reason
from vgpu.domain.cards.share import CardState, NodeState
from vgpu.domain.identifiers import CardUuid, NodeName
from vgpu.placement.snapshot import NodeView

PRODUCT: Final = "nvidia.com/gpu.product"
MEMORY: Final = "nvidia.com/gpu.memory"
COUNT: Final = "nvidia.com/gpu.count"


def view(name: NodeName, node: FullNode, slice_mib: int) -> NodeView:
    """Return a node with nothing taken; one that would offer no cards of ours is blocked.

    Memory and number of cards without a label follow from the slices and cards that the node would offer.
    """
    allocatable = {resource: _number(node.allocatable, resource) for resource in names.KUBELET_RESOURCES}
    count = min(MAX_GPUS, _number(node.labels, COUNT) or allocatable[names.CARD])
    if not count or not any(allocatable.values()):
        return NodeView(name, NodeState(name, slice_mib, ()), Reason.NO_INVENTORY)
    memory_mib = _number(node.labels, MEMORY) or allocatable[names.SLICE] // count * slice_mib
    cards = (
        Card(CardUuid(f"template-{index}"), index, node.labels.get(PRODUCT, ""), memory_mib) for index in range(count)
    )
    states = tuple(CardState(card, slice_mib) for card in cards)
    return NodeView(name, NodeState(name, slice_mib, states), None, allocatable)


def in_labels(request: PodRequest) -> PodRequest:
    """Return a request whose models are written as in labels."""
    selector = request.options.selector
    written = replace(selector, use_models=_dashed(selector.use_models), avoid_models=_dashed(selector.avoid_models))
    return request if written == selector else replace(request, options=replace(request.options, selector=written))


def _dashed(models: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(model.replace(" ", "-") for model in models)


def _number(labels: Mapping[str, str | int], name: str) -> int:
    return max(0, quantity.whole_number(labels.get(name, "")) or 0)
