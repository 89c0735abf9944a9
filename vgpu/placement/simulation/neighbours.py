"""What a simulated pod sees of other pods: those on cards, and those of its job in racks, real and simulated ones."""

import itertools
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

from vgpu.domain.asks.policy import RackPolicy
from vgpu.domain.asks.request import PodRequest
from vgpu.domain.grants.assignment import Assignment
from vgpu.domain.identifiers import CardUuid, Namespace, NodeName
from vgpu.placement import neighbours, racks
from vgpu.placement.neighbours import CardTenant

Tenants = Mapping[Namespace, Iterable[CardTenant]]


@dataclass(frozen=True, slots=True)
class SimulatedIdentity:
    """What other pods see of a simulated pod.

    Attributes:
        namespace: of the pod.
        labels: of the pod.
        job: the same for the pods of one controller or gang; empty for a pod by itself.
    """

    namespace: Namespace
    labels: tuple[tuple[str, str], ...] = ()
    job: str = ""


@dataclass(frozen=True, slots=True)
class SeenRequest:
    """What a pod asks for beside the pods that are there.

    Attributes:
        request: with the cards that affinity allows and rules out.
        preferred: with the cards that the pod prefers too; None where it prefers none now.
        used_racks: of the other pods of its job, one for each.
    """

    request: PodRequest
    preferred: PodRequest | None = None
    used_racks: tuple[str, ...] = ()


class Neighbourhood:
    """The pods on cards by namespace, to which simulated pods are added; `rack_of` returns a node's rack."""

    def __init__(self, tenants: Tenants, rack_of: Callable[[NodeName], str]) -> None:
        self._tenants = defaultdict(list, {namespace: list(found) for namespace, found in tenants.items()})
        self._rack_of = rack_of
        self._racks = defaultdict[str, list[str]](list)
        self._gangs = defaultdict[str, list[tuple[bool, Assignment]]](list)

    def seen(self, request: PodRequest, identity: SimulatedIdentity | None) -> SeenRequest:
        """Return what a pod asks for now; a pod without an identity sees no other pod."""
        if identity is None:
            return SeenRequest(request)
        others, labels, options = self._tenants[identity.namespace], dict(identity.labels), request.options
        members = self._members(request, identity.namespace)
        of_gang = self._of_gang(request, identity.job)
        is_narrowed = options.affinity or options.anti_affinity or members or of_gang
        if is_narrowed or any(other.anti_affinity for other in others):
            request = neighbours.required(request, labels, others, members, of_gang)
        preferred = neighbours.preferred(request, labels, others, members) if options.prefers_neighbours else None
        used = self._racks[identity.job] if options.rack_policy is not None and identity.job else ()
        return SeenRequest(request, preferred, tuple(sorted(used)))

    def put(self, request: PodRequest, identity: SimulatedIdentity | None, node: NodeName, held: Assignment) -> None:
        """Take a simulated pod that was placed."""
        if identity is None:
            return
        tenant = neighbours.tenant(identity.namespace, dict(identity.labels), request, held)
        self._tenants[identity.namespace].append(tenant)
        if identity.job:
            self._gangs[identity.job].append((request.options.is_apart_from_gang, held))
        if identity.job and request.options.rack_policy is not None:
            self._racks[identity.job].append(self._rack_of(node))

    def _of_gang(self, request: PodRequest, job: str) -> set[CardUuid]:
        """Return the cards of simulated pods of a pod's gang that must not be beside it."""
        is_apart, placed = request.options.is_apart_from_gang, self._gangs.get(job, ()) if job else ()
        return {card for other_is_apart, held in placed if is_apart or other_is_apart for card in held.gpus()}

    def _members(self, request: PodRequest, namespace: Namespace) -> list[CardUuid]:
        """Return the cards of the members of a pod's group in space, in all namespaces."""
        wish = request.options.space
        group = wish.group(namespace) if wish else None
        return neighbours.members_of(group, itertools.chain.from_iterable(self._tenants.values())) if group else []


def best_racks(
    policy: RackPolicy | None, used: Iterable[str], fitting: Collection[NodeName], rack_of: Callable[[NodeName], str]
) -> Collection[NodeName]:
    """Return those of the fitting nodes that a policy for racks prefers, as prioritize puts them first."""
    tiers = racks.tiers(policy, {name: rack_of(name) for name in fitting}, used) if policy is not None else {}
    best = min(tiers.values(), default=0)
    return [name for name in fitting if tiers[name] == best] if tiers else fitting
