"""What the extender reads of Kubernetes objects: JSON in, values of the domain out.

Users and other programs write these objects: a field that cannot be read is treated as missing, and raises no error.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from extender.state.fields import card_use, container_use, lifecycle, node_problems, pod_rules, refused, scheduling
from extender.state.fields.card_use import ReportedCardUse
from extender.state.fields.controller import Controller
from extender.state.fields.equal_pods import SharedRequest
from extender.state.fields.lifecycle import Lifecycle
from extender.state.fields.node_problems import NodeProblem
from extender.state.fields.refused import RefusedPod
from extender.state.fields.scheduling import Scheduling
from extender.state.host_usage import HostPod
from vgpu.domain import names, quantity
from vgpu.domain.asks import host_request, idle, node_rules, scheduler_words
from vgpu.domain.asks.host_request import HostRequest
from vgpu.domain.asks.node_rules import NodeMarks, NodeRules
from vgpu.domain.asks.request import Parsed
from vgpu.domain.cards import card_status
from vgpu.domain.cards.device import Node
from vgpu.domain.grants import assignment_trust
from vgpu.domain.grants.assignment import Assignment
from vgpu.domain.grants.assignment_trust import Distrust
from vgpu.domain.identifiers import NO_NODE, Namespace, NodeName, PodUid
from vgpu.domain.json_types import JsonObject
from vgpu.placement import fit

MAX_DIGITS = 20  # of a 64-bit number


class WatchedPod(msgspec.Struct, frozen=True, gc=False):  # it refers to no other pod, so that no cycle can begin here
    """A pod that names one of our resources or annotations, or a group of pods.

    Attributes:
        uid: the pod's identity; a recreated pod has the same name and another UID.
        namespace: of the pod.
        name: of the pod.
        node: the node that the pod is bound to, or empty.
        is_terminal: whether the pod has ended and holds nothing.
        asked: what the pod asks for; pods that ask for equal things share it.
        assignment: what the pod's annotation grants, or why that is not trusted.
        is_unschedulable: whether kube-scheduler found no node for the pod in its last attempt.
        is_readable: whether every field that is read has the type that it must have.
        scheduling: the pod's priority, and where its preemption stands.
        version: the object's resourceVersion; of a deleted pod, the version of its deletion.
        lifecycle: when the pod and its containers ran, and what created the pod.
        has_started: whether the kubelet has admitted the pod, so that it held devices.
        idle_setting: what the pod says about the time in which it uses none of its cards.
        is_warned: whether the pod was warned that it does not.
        scheduler_message: what kube-scheduler wrote when it found no node for the pod; empty where it has not.
        rules_json: the fields of the pod's spec from which `rules` are read; empty for a pod that is bound.
        controller: what made the pod, by its own words; None where nothing did, and for a pod that is in no gang.
    """

    uid: PodUid
    namespace: Namespace
    name: str
    node: NodeName
    is_terminal: bool
    asked: SharedRequest
    assignment: Assignment | Distrust = assignment_trust.NOTHING_ASSIGNED
    is_unschedulable: bool = False
    is_readable: bool = True
    scheduling: Scheduling = scheduling.DEFAULT
    version: int = 0
    has_started: bool = False
    lifecycle: Lifecycle = lifecycle.UNKNOWN
    idle_setting: idle.Setting = idle.NOTHING_SET
    is_warned: bool = False
    scheduler_message: str = ""
    rules_json: bytes = b""
    controller: Controller | None = None

    @property
    def rules(self) -> NodeRules:
        """Which nodes the pod may be on."""
        return pod_rules.read(self.rules_json)

    @property
    def unknown_refusals(self) -> list[str]:
        """What kube-scheduler said of this pod that no object here explains, such as conflicts of volumes."""
        return scheduler_words.unknown(self.scheduler_message, rules_known=self.rules.is_known)

    @property
    def parsed(self) -> Parsed:
        """What the pod asks of GPUs, with the problems."""
        return self.asked.parsed

    @property
    def host(self) -> HostRequest:
        """What the pod requests of its node's CPU and memory."""
        return self.asked.host

    @property
    def on_host(self) -> HostPod:
        """What the pod takes of its node's CPU and memory."""
        return HostPod(self.uid, NO_NODE if self.is_terminal else self.node, self.host)

    @property
    def asks_for_cards(self) -> bool:
        """Whether the pod asks for GPUs, or tries to; others are watched because they name our domain, or for a group.

        A device plugin's pod is one of those: nothing that counts or lists GPU pods has it.
        """
        return self.parsed.request is not None or bool(self.parsed.problems)

    @property
    def waits_for_node(self) -> bool:
        """Whether the pod asks for GPUs, or tries to, and has no node."""
        return self.asks_for_cards and not (self.node or self.is_terminal or self.scheduling.is_terminating)

    @property
    def reference(self) -> dict[str, str]:
        """The reference for an Event about this object."""
        name = {"namespace": self.namespace, "name": self.name}
        return {"apiVersion": "v1", "kind": "Pod", "uid": self.uid, **name}

    def is_admitted(self, slice_mib: int) -> bool:
        """Whether the webhook has added exactly the slices or cards of the request."""
        if self.parsed.request is None:
            return False
        expected = {}
        for container in self.parsed.request.containers:
            resource, amount = self.parsed.request.kubelet_resource(container, slice_mib)
            expected[container.name, resource] = amount
        return self.asked.admitted == expected


@dataclass(frozen=True, slots=True)
class KubeNode:
    """A Node: what its kubelet would allocate in total, including what is in use.

    Attributes:
        name: of the node.
        allocatable: slices and cards.
        host: CPU and memory.
        rack: in which the node is; empty where no label says it.
        marks: its labels and taints, which kube-scheduler looks at.
    """

    name: NodeName
    allocatable: Mapping[str, int]
    host: HostRequest = host_request.NOTHING
    rack: str = ""
    marks: NodeMarks = node_rules.NO_MARKS

    @property
    def offers_nothing(self) -> bool:
        """Whether the kubelet offers no device of ours: the device plugin is not registered."""
        return not any(self.allocatable.values())

    def left(self, taken: Mapping[str, int], resource: str) -> int:
        """Return how many more devices of a resource the kubelet would hand out beside those taken."""
        return self.allocatable.get(resource, 0) - taken.get(resource, 0)

    def has_room(self, taken: Mapping[str, int], more: Mapping[str, int]) -> bool:
        """Whether the kubelet would admit a pod with `more` devices beside those taken; otherwise it fails the pod."""
        return fit.kubelet_has_room(self.allocatable, taken, more)


@dataclass(frozen=True, slots=True)
class GpuNode:
    """A GPUNode: the domain's node, when the object was created, and what its device plugin reports of pods.

    Attributes:
        node: the domain's node.
        uid: of the object.
        created: when the object was created.
        version: the resourceVersion since which `node` is as it is.
        refusals: pods that the device plugin refused, or found.
        usage: what containers have used, by the UID of their pod.
        card_use: what was measured of its cards.
        problems: what the device plugin says is wrong on the node.
    """

    node: Node
    uid: str
    created: str
    version: int = 0
    refusals: tuple[RefusedPod, ...] = ()
    usage: container_use.ByPod = field(default_factory=dict)
    problems: tuple[NodeProblem, ...] = ()
    card_use: tuple[ReportedCardUse, ...] = ()

    @property
    def reference(self) -> dict[str, str]:
        """The reference for an Event about this object."""
        return {"apiVersion": names.API_VERSION, "kind": "GPUNode", "uid": self.uid, "name": self.node.name}

    def differs_in_usage_only(self, other: "GpuNode") -> bool:
        """Whether two versions differ in what containers and cards have used, and in nothing else but versions."""
        rest = (self.uid, self.created, self.node, self.refusals, self.problems)
        same = rest == (other.uid, other.created, other.node, other.refusals, other.problems)
        used = (self.usage, self.card_use) != (other.usage, other.card_use)
        return same and used and other.version >= 0


@dataclass(frozen=True, slots=True)
class WatchedLease:
    """A Lease, as the watch shows it; `admin` is its annotation `vgpu.io/admin`, empty where it has none."""

    name: str
    holder: str
    renewed: str
    duration_s: int
    admin: str = ""


def version(text: str) -> int:
    """Read a resourceVersion, which is etcd's revision: the higher one is later; -1 where it cannot be read.

    Comparing them is part of the API since Kubernetes 1.35, and works with every version that stores in etcd.
    """
    return int(text) if text.isascii() and text.isdigit() and len(text) < MAX_DIGITS else -1


def node(raw: bytes) -> KubeNode:
    """Read a Node."""
    obj: JsonObject = msgspec.json.decode(raw)
    allocatable = (obj.get("status") or {}).get("allocatable") or {}
    amounts = {name: quantity.whole_number(allocatable.get(name, 0)) or 0 for name in names.KUBELET_RESOURCES}
    marks = node_rules.of_node(obj)
    rack = marks.labels.get(names.RACK, "")
    return KubeNode(obj["metadata"]["name"], amounts, host_request.of_node(allocatable), rack, marks)


def gpunode(raw: bytes) -> GpuNode:
    """Read a GPUNode, with the admin's settings for each card from its spec.

    Raises ValueError where cards are reported without the size of a slice: what is taken of them cannot be counted.
    """
    obj: JsonObject = msgspec.json.decode(raw)
    metadata, status = obj["metadata"], obj.get("status") or {}
    return GpuNode(
        node=card_status.node(obj),
        uid=metadata.get("uid", ""),
        created=metadata.get("creationTimestamp", ""),
        version=version(metadata.get("resourceVersion", "")),
        refusals=refused.decode(status),
        usage=container_use.decode(status),
        problems=node_problems.decode(status),
        card_use=card_use.decode(status),
    )


def lease(raw: bytes) -> WatchedLease:
    """Read a Lease."""
    obj: JsonObject = msgspec.json.decode(raw)
    spec, metadata = obj.get("spec") or {}, obj["metadata"]
    admin = (metadata.get("annotations") or {}).get(names.ADMIN_ANNOTATION, "")
    return WatchedLease(
        metadata["name"],
        spec.get("holderIdentity") or "",
        spec.get("renewTime") or "",
        spec.get("leaseDurationSeconds") or 0,
        admin,
    )
