"""A node as placement sees it at one time: the immutable input of explain and simulate, for any process."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from vgpu import usage
from vgpu.assignment import Assignment
from vgpu.placement import choose, fit, preempt
from vgpu.placement.choose import Refusal
from vgpu.policy import PackingPolicy
from vgpu.reasons import Reason
from vgpu.request import PodRequest
from vgpu.share import NodeState


@dataclass(frozen=True, slots=True)
class NodeView:
    """One node.

    Attributes:
        name: of the node.
        state: its cards with what is taken of them; without cards where no device plugin reported any.
        blocked: why the node cannot be used whatever is free on it; None where it can.
        allocatable: devices that the kubelet would allocate in total, by resource.
    """

    name: str
    state: NodeState
    blocked: Reason | None = None
    allocatable: Mapping[str, int] = field(default_factory=dict)

    def place(self, request: PodRequest, policy: PackingPolicy) -> Assignment | Refusal:
        """Return where a pod is placed on this node, or why it cannot be."""
        if self.blocked is not None:
            return Refusal(self.blocked)
        placement = choose.place(request, self.state, policy)
        if isinstance(placement, Refusal):
            return placement
        devices = request.devices(self.state.slice_mib)
        if not fit.kubelet_has_room(self.allocatable, self.state.devices, devices):
            return Refusal(Reason.KUBELET_OFFERS_LESS)
        return placement

    def with_pod(self, request: PodRequest, assignment: Assignment) -> "NodeView":
        """Return the node after a pod was bound to it with this assignment."""
        taken = usage.of_pod(assignment, request, self.state.slice_mib, self.state.card_slices)
        state = preempt.with_usage(self.state, taken)
        devices = dict(self.state.devices)
        for name, amount in request.devices(self.state.slice_mib).items():
            devices[name] = devices.get(name, 0) + amount
        return replace(self, state=replace(state, devices=devices))
