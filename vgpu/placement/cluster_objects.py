"""A cluster from the JSON of its objects, such as `kubectl get -o json` writes: nodes with what is taken of them.

The objects are those of one time, so there are no reservations and no Leases: a node can be used where its kubelet
offers devices.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from vgpu.domain import names, quantity
from vgpu.domain.asks import host_request, node_rules, request
from vgpu.domain.asks.host_request import NOTHING, HostRequest
from vgpu.domain.asks.request import PodRequest
from vgpu.domain.cards import card_status, ownership
from vgpu.domain.cards.device import Card, Node
from vgpu.domain.cards.ownership import CardClaim
from vgpu.domain.cards.reasons import Reason
from vgpu.domain.cards.share import UNKNOWN_HOST, HostRoom, NodeState
from vgpu.domain.grants import assignment_trust, usage
from vgpu.domain.grants.assignment import Assignment
from vgpu.domain.identifiers import DEFAULT_NAMESPACE, NO_NODE, CardUuid, Namespace, NodeName
from vgpu.domain.json_types import Json
from vgpu.placement import neighbours, room
from vgpu.placement.costs import fragmentation
from vgpu.placement.demand import Demand, TypicalPods
from vgpu.placement.models import Models
from vgpu.placement.neighbours import CardTenant
from vgpu.placement.policies import DefaultPolicies
from vgpu.placement.simulation.gangs import Ganged
from vgpu.placement.simulation.neighbours import SimulatedIdentity, Tenants
from vgpu.placement.simulation.simulate import Wanted
from vgpu.placement.snapshot import NodeView

UNREADABLE: Final = (AttributeError, KeyError, TypeError, ValueError, RecursionError, OverflowError)
ENDED: Final = frozenset({"Succeeded", "Failed"})


@dataclass(frozen=True, slots=True)
class Waiting:
    """A pod that no node holds."""

    namespace: Namespace
    name: str
    wanted: Wanted


@dataclass(frozen=True, slots=True)
class ClusterObjects:
    """What the objects say.

    Attributes:
        views: of the nodes that have a GPUNode, by name.
        waiting: the pods that ask for GPUs and that no node holds, in the order of the objects.
        seen: what the pods ask for, for policies that learn.
        skipped: the objects that cannot be read, each with the reason.
        slice_mib: MiB of a memory slice on most nodes; 0 without cards.
        tenants: the pods that hold cards, by namespace.
    """

    views: Mapping[NodeName, NodeView]
    waiting: tuple[Waiting, ...]
    seen: tuple[Wanted, ...]
    skipped: tuple[str, ...]
    slice_mib: int
    tenants: Tenants

    def learned(self, defaults: DefaultPolicies) -> DefaultPolicies:
        """Return the policies with what they learn from the pods."""
        models, typical = Models(), TypicalPods()
        usable = [view.state for view in self.views.values() if view.blocked is None]
        rooms = [room.room_of(state, models) for state in usable]
        slices = [card.total_slices for state in usable for card in state.cards]
        slice_mib = self.slice_mib or 1
        for pod in self.seen:
            ask = room.ask_of(pod.request, pod.host.cpu_milli, pod.host.memory_mib, slice_mib, models)
            typical.see(ask)
        demand: Demand = typical.demand(
            lambda ask: sum(fragmentation.copies(of_node, ask) for of_node in rooms),
            sum(of_node.share for of_node in rooms),
            max(1, sum(slices) // max(1, len(slices))),
        )
        return replace(defaults, demand=demand, models=models)


def read(objects: Iterable[Json]) -> ClusterObjects:
    """Read Nodes, GPUNodes and Pods; objects of other kinds are left out."""
    found = _ObjectReader()
    for obj in objects:
        found.take(obj)
    return found.cluster()


class _ObjectReader:
    """Collects the objects; what pods hold is added up by node."""

    def __init__(self) -> None:
        self._gpunodes: dict[NodeName, Node] = {}
        self._created: dict[NodeName, str] = {}
        self._allocatable: dict[NodeName, dict[str, int]] = {}
        self._hosts: dict[NodeName, HostRequest] = {}
        self._marks: dict[NodeName, node_rules.NodeMarks] = {}
        self._taken = defaultdict[NodeName, HostRequest](lambda: NOTHING)
        self._held = defaultdict[NodeName, list[tuple[PodRequest, Assignment]]](list)
        self._tenants = defaultdict[Namespace, list[CardTenant]](list)
        self._waiting: list[Waiting] = []
        self._seen: list[Wanted] = []
        self._bound = Counter[str]()
        self._skipped: list[str] = []

    def take(self, obj: Json) -> None:
        """Take an object."""
        kind = obj.get("kind") if isinstance(obj, Mapping) else None
        readers = {"Node": self._node, "GPUNode": self._gpunode, "Pod": self._pod}
        if isinstance(kind, str) and kind in readers:
            try:
                readers[kind](obj)
            except UNREADABLE as error:
                metadata = obj.get("metadata")
                name = metadata.get("name") if isinstance(metadata, Mapping) else None
                self._skipped.append(f"{kind} {str(name)[:253]}: {str(error)[:200]}")

    def cluster(self) -> ClusterObjects:
        """Return what the objects taken say."""
        sizes = Counter(node.slice_mib for node in self._gpunodes.values() if node.cards)
        slice_mib = sizes.most_common(1)[0][0] if sizes else 0
        views = {node.name: self._view(node, slice_mib) for node in self._owned()}
        waiting = tuple(replace(pod, wanted=self._unstarted(pod.wanted)) for pod in self._waiting)
        return ClusterObjects(views, waiting, tuple(self._seen), tuple(self._skipped), slice_mib, self._tenants)

    def _owned(self) -> Iterator[Node]:
        """Yield the nodes; a card that several report is closed on all but the one on which it counts."""
        claims = defaultdict[CardUuid, list[CardClaim]](list)
        for node in self._gpunodes.values():
            for card in node.cards:
                claims[card.uuid].append(self._claim(node.name, card))
        owners = {uuid: ownership.owner(found) for uuid, found in claims.items()}
        for node in self._gpunodes.values():
            cards = (ownership.on_node(card, node.name, owners[card.uuid]) for card in node.cards)
            yield replace(node, cards=tuple(cards))

    def _claim(self, node: NodeName, card: Card) -> CardClaim:
        """Return a node's claim; without Leases, a plugin lives where its kubelet offers devices."""
        created = ownership.age(self._created[node])
        return CardClaim(node, self._is_offered(node), 0.0, card.healthy, created)

    def _is_offered(self, node: NodeName) -> bool:
        return any(self._allocatable.get(node, {}).values())

    def _unstarted(self, wanted: Wanted) -> Wanted:
        """Return a waiting pod; without its gang where pods of the gang are bound: it has started."""
        has_started = wanted.gang is not None and self._bound[wanted.gang.name] > 0
        return replace(wanted, gang=None) if has_started else wanted

    def _node(self, obj: Json) -> None:
        allocatable = (obj.get("status") or {}).get("allocatable") or {}
        name = obj["metadata"]["name"]
        amounts = {
            resource: quantity.whole_number(allocatable.get(resource, 0)) or 0 for resource in names.KUBELET_RESOURCES
        }
        self._allocatable[name] = amounts
        self._hosts[name] = host_request.of_node(allocatable)
        self._marks[name] = node_rules.of_node(obj)

    def _gpunode(self, obj: Json) -> None:
        node = card_status.node(obj)
        _check_types(node)
        self._gpunodes[node.name] = node
        self._created[node.name] = str(obj["metadata"].get("creationTimestamp") or "")

    def _pod(self, obj: Json) -> None:
        metadata, spec = obj["metadata"], obj.get("spec") or {}
        if not all(isinstance(metadata.get(key) or "", str) for key in ("name", "namespace")):
            raise TypeError("metadata: name and namespace: must be text")
        node, host = spec.get("nodeName") or NO_NODE, host_request.of_pod(spec)
        if (obj.get("status") or {}).get("phase") in ENDED:
            return
        parsed = request.parse(obj)
        if node:
            self._taken[node] += host
        if parsed.problems:
            self._skipped.append(f"Pod {metadata['name']}: {parsed.problems[0]}")
        elif parsed.request is not None:
            namespace = metadata.get("namespace") or DEFAULT_NAMESPACE
            gang = Ganged(f"{namespace}/{parsed.gang.name}", parsed.gang.size) if parsed.gang else None
            seen = identity(metadata, gang.name if gang else _owner(metadata))
            self._asking(metadata, node, parsed, Wanted(parsed.request, host, gang, node_rules.of_pod(spec), seen))

    def _asking(self, metadata: Json, node: NodeName, parsed: request.Parsed, wanted: Wanted) -> None:
        if any(container.memory_percentage is not None for container in wanted.request.containers):
            self._skipped.append(f"Pod {metadata['name']}: its percentage was not resolved by the webhook")
            return
        self._seen.append(wanted)
        if not node:
            self._waiting.append(Waiting(metadata.get("namespace") or DEFAULT_NAMESPACE, metadata["name"], wanted))
            return
        if wanted.gang is not None:
            self._bound[wanted.gang.name] += 1
        held = assignment_trust.judge(parsed, (metadata.get("annotations") or {}).get(names.ASSIGNMENT, ""))
        if isinstance(held, Assignment):
            self._held[node].append((wanted.request, held))
            if wanted.identity is not None:
                namespace, labels = wanted.identity.namespace, dict(wanted.identity.labels)
                self._tenants[namespace].append(neighbours.tenant(namespace, labels, wanted.request, held))
        else:
            self._skipped.append(f"Pod {metadata['name']}: {held.detail}")

    def _view(self, node: Node, slice_mib: int) -> NodeView:
        allocatable = self._allocatable.get(node.name, {})
        devices = Counter[str]()
        for asked, _ in self._held[node.name]:
            devices.update(asked.devices(node.slice_mib))
        state = NodeState.of(node, usage.on_node(node, self._held[node.name]), dict(devices))
        return NodeView(
            node.name, replace(state, host=self._host(node.name)), self._blocked(node, slice_mib), allocatable,
            marks=self._marks.get(node.name, node_rules.NO_MARKS),
        )  # fmt: skip

    def _blocked(self, node: Node, slice_mib: int) -> Reason | None:
        if not node.cards:
            return Reason.NO_INVENTORY
        if not self._is_offered(node.name):
            return Reason.PLUGIN_AWAY
        return None if node.slice_mib == slice_mib else Reason.SLICE_SIZE_MISMATCH

    def _host(self, name: NodeName) -> HostRoom:
        allocatable = self._hosts.get(name, NOTHING)
        if allocatable == NOTHING:
            return UNKNOWN_HOST
        free = allocatable - self._taken[name]
        return HostRoom(max(0, free.cpu_milli), max(0, free.memory_mib))


def identity(metadata: Json, job: str) -> SimulatedIdentity:
    """Return what other pods see of a pod; labels that are no text are left out."""
    labels = metadata.get("labels") or {}
    texts = tuple(sorted((key, value) for key, value in labels.items() if isinstance(value, str)))
    return SimulatedIdentity(metadata.get("namespace") or DEFAULT_NAMESPACE, texts, job)


def _owner(metadata: Json) -> str:
    """Return what names a pod's controller in its namespace; empty where it has none."""
    for owner in metadata.get("ownerReferences") or ():
        if owner.get("controller"):
            return f"{metadata.get('namespace') or DEFAULT_NAMESPACE}/{owner.get('kind')}/{owner.get('name')}"
    return ""


def _check_types(node: Node) -> None:
    """Raise TypeError where a field of a GPUNode has another type than the API server would accept."""
    texts = [node.name, *(text for card in node.cards for text in (card.uuid, card.model))]
    numbers = [node.slice_mib, *(number for card in node.cards for number in (card.index, card.memory_mib))]
    if not all(isinstance(text, str) for text in texts):
        raise TypeError("name, uuid and model: must be text")
    if not all(type(number) is int for number in numbers):
        raise TypeError("sliceMiB, index and memoryMiB: must be whole numbers")
