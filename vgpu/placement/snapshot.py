"""A node as placement sees it at one time: the immutable input of explain and simulate, for any process."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from vgpu.domain import names
from vgpu.domain.asks import node_rules
from vgpu.domain.asks.host_request import NOTHING, HostRequest
from vgpu.domain.asks.node_rules import NodeMarks, NodeRules
from vgpu.domain.asks.policy import PackingPolicy
from vgpu.domain.asks.request import PodRequest
from vgpu.domain.cards.reasons import Reason
from vgpu.domain.cards.share import HostRoom, NodeState
from vgpu.domain.grants import usage
from vgpu.domain.grants.assignment import Assignment
from vgpu.domain.identifiers import NodeName
from vgpu.placement import choose, fit, job_sets, preempt
from vgpu.placement.choose import NodeRefusal


@dataclass(frozen=True, slots=True)
class NodeView:
    """One node.

    Attributes:
        name: of the node.
        state: its cards with what is taken of them; without cards where no device plugin reported any.
        blocked: why the node cannot be used whatever is free on it; None where it can.
        allocatable: devices that the kubelet would allocate in total, by resource.
        silent_since: when the device plugin was last heard of, as RFC 3339; empty while it lives, or where unknown.
        marks: its labels and taints, by which a pod's rules may refuse it.
    """

    name: NodeName
    state: NodeState
    blocked: Reason | None = None
    allocatable: Mapping[str, int] = field(default_factory=dict)
    silent_since: str = ""
    marks: NodeMarks = node_rules.NO_MARKS

    @property
    def unusable(self) -> Reason | None:
        """Why no pod can be placed on the node now, whatever is free on it; None where pods can.

        A pod's own tolerations do not count: they are judged for that pod, by `for_pod`.
        """
        return self.blocked or self.marks.closed

    @property
    def rack(self) -> str:
        """The rack in which the node is; empty where no label says it."""
        return self.marks.labels.get(names.RACK, "")

    def place(
        self, request: PodRequest, policy: PackingPolicy, host: HostRequest = NOTHING
    ) -> Assignment | NodeRefusal:
        """Return where a pod is placed on this node, or why it cannot be.

        A node that has not the CPU or host memory free that the pod requests (`host`) refuses it last. The extender
        never refuses for that, because kube-scheduler does.
        """
        if self.blocked is not None:
            return NodeRefusal(self.blocked)
        placement = choose.place(request, self.state, policy)
        if isinstance(placement, NodeRefusal):
            return placement
        devices = request.devices(self.state.slice_mib)
        if not fit.kubelet_has_room(self.allocatable, self.state.devices, devices):
            return NodeRefusal(Reason.KUBELET_OFFERS_LESS)
        lacking = self._lacks(host)
        return NodeRefusal(lacking) if lacking else placement

    def for_pod(self, host: HostRequest, rules: NodeRules = node_rules.ANY_NODE) -> "NodeView":
        """Return the node; blocked where a pod's rules refuse it, or where it lacks CPU or host memory for the pod."""
        refused = rules.refusal(self.name, self.marks)
        if refused is not None:
            return replace(self, blocked=refused.reason)
        lacking = None if self.blocked else self._lacks(host)
        return replace(self, blocked=lacking) if lacking else self

    def with_pod(self, request: PodRequest, assignment: Assignment, host: HostRequest = NOTHING) -> "NodeView":
        """Return the node after a pod was bound to it with this assignment."""
        taken = usage.of_pod(assignment, request, self.state.slice_mib, self.state.card_slices)
        state = preempt.with_usage(self.state, taken)
        devices = dict(self.state.devices)
        for name, amount in request.devices(self.state.slice_mib).items():
            devices[name] = devices.get(name, 0) + amount
        free = HostRoom(self.state.host.cpu_milli - host.cpu_milli, self.state.host.memory_mib - host.memory_mib)
        jobs = (*state.jobs, *job_sets.of_assignment(assignment))
        return replace(self, state=replace(state, devices=devices, host=free, jobs=jobs))

    def _lacks(self, host: HostRequest) -> Reason | None:
        if host.cpu_milli > self.state.host.cpu_milli:
            return Reason.NODE_INSUFFICIENT_CPU
        return Reason.NODE_INSUFFICIENT_MEMORY if host.memory_mib > self.state.host.memory_mib else None
