"""Whether the device IDs that a container holds are on the cards that were assigned to it. Pure.

A container that is proven gets its limits. Any other is refused, so that no container runs with another pod's limits.
"""

from collections import Counter
from collections.abc import Collection, Sequence

from vgpu.domain.asks.policy import ComputePolicy, MemoryPolicy, default_compute_policy
from vgpu.domain.asks.request import ContainerRequest, PodRequest
from vgpu.domain.asks.space import SpaceOptions
from vgpu.domain.formats.limits import CardLimit, Limits, SpaceMembership
from vgpu.domain.grants import assignment_trust
from vgpu.domain.grants.assignment import Assignment, Grant
from vgpu.domain.grants.assignment_trust import Distrust
from vgpu.domain.identifiers import CardUuid, ContainerName
from vgpu.domain.quantity import FULL_CORES, MIB
from vgpu.node.cards import device_ids
from vgpu.node.containers.bound_pod import BoundPod
from vgpu.node.containers.refusal import ContainerRefusal, NodeReason


def assignment_of(pod: BoundPod) -> Assignment | ContainerRefusal:
    """Return a pod's assignment where it can be trusted, else why the pod may not start."""
    if pod.is_mirror:
        return ContainerRefusal(NodeReason.STATIC_POD, "static pods are not scheduled, so no card was assigned")
    if pod.parsed.request is None and not pod.parsed.problems:
        return ContainerRefusal(NodeReason.NOT_ADMITTED, "the pod asks for devices, but for no GPU memory and no GPU")
    assignment = assignment_trust.judge(pod.parsed, pod.assignment)
    return ContainerRefusal(assignment.reason, assignment.detail) if isinstance(assignment, Distrust) else assignment


def card_mismatch(
    request: PodRequest, assignment: Assignment, container: ContainerName, ids: frozenset[str], slice_mib: int
) -> ContainerRefusal | None:
    """Return why a container's IDs do not match its assignment card by card, or None where they do."""
    asked = request_of(request, container)
    grants = assignment.containers.get(container)
    if asked is None or grants is None:
        return ContainerRefusal(NodeReason.CARD_MISMATCH, f"container {container} holds devices and was assigned none")
    count = 1 if asked.whole else request.slices(asked, slice_mib)
    decided = Counter({grant.gpu: count for grant in grants})
    if device_ids.by_gpu(ids) == decided:
        return None
    return ContainerRefusal(
        NodeReason.CARD_MISMATCH, f"the kubelet gave {_listed(device_ids.by_gpu(ids))}; assigned: {_listed(decided)}"
    )


def covered_files(pod: BoundPod, containers: Collection[ContainerName]) -> ContainerRefusal | None:
    """Return why containers may not start whose own volumes are mounted over the limiter's files, or None."""
    found = [f"{path} in container {name}" for name, path in pod.covered if name in containers]
    if not found:
        return None
    return ContainerRefusal(NodeReason.FILES_COVERED, f"a volume covers the limiter's files: {', '.join(found)}")


def limits_for(
    request: PodRequest,
    container: ContainerRequest,
    grants: Sequence[Grant],
    member: SpaceOptions | None = None,
    job: bytes | None = None,
) -> Limits:
    """Return a container's limits: exact MiB and percent per card; a whole card has no limit.

    `member` is what the pod of a member of a group in space says. A library that knows no groups gives a member turns
    under the policy `burst`. `job` is that of the pod (`job_identity.fingerprint`).
    """
    options = request.options
    policy = options.compute_policy or default_compute_policy(container.cores)
    if container.whole or member is not None:
        policy = ComputePolicy.BURST
    memory_policy = options.memory_policy or MemoryPolicy.REFUSE
    membership = SpaceMembership(member.group.fingerprint, member.sm_percentage) if member else None
    return Limits(tuple(map(_card_limit, grants)), policy, options.priority, memory_policy, membership, job)


def request_of(request: PodRequest, container: ContainerName) -> ContainerRequest | None:
    """Return what one container of a pod asks for, or None where it asks for no GPU."""
    return next((asked for asked in request.containers if asked.name == container), None)


def _card_limit(grant: Grant) -> CardLimit:
    if grant.whole:
        return CardLimit(grant.gpu, None, FULL_CORES)
    return CardLimit(grant.gpu, grant.memory_mib * MIB, grant.cores or 0)


def _listed(counts: Counter[CardUuid]) -> str:
    return ", ".join(f"{count} of {gpu}" for gpu, count in sorted(counts.items())) or "nothing"
