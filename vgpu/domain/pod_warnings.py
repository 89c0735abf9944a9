"""Warnings about a pod that is admitted, and likely not what its owner meant: kubectl, simulations print them."""

from collections.abc import Iterator

from vgpu.domain import names, suggestion
from vgpu.domain.asks import manifest, other_names, request
from vgpu.domain.asks.gang import FIELDS
from vgpu.domain.asks.policy import GangCards
from vgpu.domain.asks.request import ContainerKind, ContainerRequest
from vgpu.domain.json_types import Json
from vgpu.domain.problem import Problem
from vgpu.domain.quantity import GIB_IN_MIB, SMALLEST_PLAIN_MIB

_ANNOTATIONS = (*names.USER_ANNOTATIONS, *names.LIVE_ANNOTATIONS)
_LABELS = frozenset({names.SYNTHETIC})  # that pods may have


def warnings(pod: Json) -> list[Problem]:
    """Return the warnings about a new pod, as its user wrote it or after all mutation; none where it asks for no GPU.

    A pod may be meant for another plugin too, so names that only resemble ours are no reason to refuse it.
    """
    if not manifest.wants_gpu(pod):
        return []
    asked = request.parse(pod).request
    found = [_tiny(container) for container in asked.containers if _is_tiny(container)] if asked else []
    found.extend(_shared_gang_cards(pod))
    return [*found, *other_names.misspelt(pod), *_action_alone(pod), *_misplaced_labels(pod), *_other_domains(pod)]


def _is_tiny(container: ContainerRequest) -> bool:
    return 0 < container.memory_mib < SMALLEST_PLAIN_MIB


def _tiny(container: ContainerRequest) -> Problem:
    """Return the warning: 4 is a common mistake for 4096, because gpushare counts in GiB and vgpushare in MiB."""
    total = container.memory_mib * container.gpus
    of = "containers" if container.kind is ContainerKind.APP else "initContainers"
    return Problem(
        f"spec.{of}[{container.name}].resources.limits[{names.GPU_MEM}]",
        str(total),
        f"is in MiB, and too little for a CUDA program; for {total} GiB write {total * GIB_IN_MIB}",
    )


def _shared_gang_cards(pod: Json) -> Iterator[Problem]:
    """Yield a warning for a gang of shares of which two may get the same card: two ranks of NCCL cannot have one."""
    parsed = request.parse(pod)
    if parsed.gang is None or parsed.request is None or parsed.request.options.gang_cards is not None:
        return
    if any(not container.whole for container in parsed.request.choosers):
        why = (
            f"two of its pods may get shares of one card, which NCCL refuses as a duplicate GPU: write "
            f"{names.GANG_CARDS}: {GangCards.OWN} to keep them apart, or {GangCards.ANY} where they may share"
        )
        yield Problem(FIELDS[parsed.gang.source], parsed.gang.name, why)


def _action_alone(pod: Json) -> Iterator[Problem]:
    """Yield a warning for an action without the time after which it is taken; a namespace may say that too."""
    annotations = manifest.annotations(pod)
    if names.IDLE_ACTION in annotations and names.IDLE_AFTER not in annotations:
        why = f"has no effect without {names.IDLE_AFTER}, on the pod or as the default of its namespace"
        yield Problem(f"metadata.annotations[{names.IDLE_ACTION}]", annotations[names.IDLE_ACTION], why)


def _misplaced_labels(pod: Json) -> Iterator[Problem]:
    """Yield a warning for each label of ours: what a pod says is in annotations, what it asks for in its resources."""
    for name, value in sorted(manifest.labels(pod).items()):
        if name.startswith(f"{names.DOMAIN}/") and name not in _LABELS:
            place = "resources.limits of a container" if name in names.USER_RESOURCES else "metadata.annotations"
            yield Problem(f"metadata.labels[{name}]", value, f"has no effect as a label; write it in {place}")


def _other_domains(pod: Json) -> Iterator[Problem]:
    """Yield a warning for each annotation in a domain that people take for ours, such as vgpushare.io."""
    for name, value in sorted(manifest.annotations(pod).items()):
        if other_names.is_taken_for_ours(name):
            bare = f"{names.DOMAIN}/{name.rpartition('/')[2]}"
            instead = suggestion.instead_of(bare, _ANNOTATIONS)
            yield Problem(f"metadata.annotations[{name}]", value, f"is not known to vgpushare; {instead}")
