"""Translates a pod's foreign resource names into ours, and percentages of memory into MiB.

The outcome is a new pod with its request, or the list of problems.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from vgpu.domain import names
from vgpu.domain.asks import aliases, foreign_annotations, manifest, percentage, request
from vgpu.domain.asks.percentage import CardSizes
from vgpu.domain.asks.request import ContainerRequest, PodRequest
from vgpu.domain.cards.device import Card
from vgpu.domain.identifiers import ContainerName
from vgpu.domain.json_types import Json
from vgpu.domain.problem import Problem


@dataclass(frozen=True, slots=True)
class TranslatedPod:
    """A pod in our own names.

    Attributes:
        pod: the translated pod; the original one where there are problems.
        asked: the pod's request; None where it asks for no GPU, or where there are problems.
        problems: by the names that the user wrote.
        resolved: what each percentage is in MiB, by the names that the user wrote; for the user to read.
    """

    pod: Json
    asked: PodRequest | None
    problems: tuple[Problem, ...] = ()
    resolved: tuple[Problem, ...] = ()


_FOREIGN_PERCENTAGES: Final = tuple(family.percentage for family in aliases.FAMILIES if family.percentage)


def translate(pod: Json, cards: Callable[[], Iterable[Card]], gpushare_unit_mib: int, slice_mib: int) -> TranslatedPod:
    """Translate a pod into our own names and MiB.

    `cards` returns the cluster's cards, for percentages; `gpushare_unit_mib` is the MiB of one `aliyun.com/gpu-mem`,
    `slice_mib` those of a memory slice.
    """
    if request.has_too_many_containers(pod, manifest.asks):
        return TranslatedPod(pod, None, (request.TOO_MANY_CONTAINERS,))
    found = [
        (container, aliases.translate(f"{path}.resources.limits", request.amounts(container), gpushare_unit_mib))
        for path, _, container in request.containers_of(pod)
    ]
    ours = with_containers(pod, [replaced(container, said.removed, said.ours) for container, said in found])
    ours, refused = _with_annotations(ours)
    parsed = request.parse(ours)
    problems = (*(problem for _, said in found for problem in said.problems), *refused, *parsed.problems)
    if parsed.request is None or problems:
        return TranslatedPod(pod, None, problems)
    percentages = {c.name: c for c in parsed.request.containers if c.memory_percentage is not None}
    if not percentages:
        return TranslatedPod(ours, parsed.request)
    sizes = CardSizes.of(cards(), parsed.request.options.selector)
    return _in_mib(pod, ours, percentages, sizes, slice_mib)


def _with_annotations(pod: Json) -> tuple[Json, list[Problem]]:
    """Translate the annotations of a pod that asks for GPUs; a foreign annotation stays beside ours."""
    before = manifest.annotations(pod)
    if foreign_annotations.NAMES.isdisjoint(before) or not manifest.wants_gpu(pod):
        return pod, []
    after, problems = foreign_annotations.translate(before)
    if problems:
        return pod, problems
    return {**pod, "metadata": {**pod["metadata"], "annotations": after}}, []


def with_containers(pod: Json, containers: Sequence[Json]) -> Json:
    """Return a pod with other containers, given in the order of `request.containers_of`."""
    spec = {**pod.get("spec", {})}
    rest = iter(containers)
    for key in ("initContainers", "containers"):
        if spec.get(key):
            spec[key] = [next(rest) for _ in spec[key]]
    return {**pod, "spec": spec}


def replaced(container: Json, removed: Iterable[str], added: Mapping[str, str]) -> Json:
    """Return a container with resources removed and added, in limits and requests alike."""
    if not removed and not added:
        return container
    resources = container.get("resources") or {}
    gone = set(removed)
    both = {
        side: {name: value for name, value in (resources.get(side) or {}).items() if name not in gone} | dict(added)
        for side in ("limits", "requests")
    }
    return {**container, "resources": {**resources, **both}}


def _in_mib(
    pod: Json, ours: Json, percentages: Mapping[ContainerName, ContainerRequest], sizes: CardSizes, slice_mib: int
) -> TranslatedPod:
    """Return the pod with percentages replaced by MiB, in total over the cards of each container."""
    containers, said, refused = [], [], []
    for (path, _, written), (_, _, container) in zip(
        request.containers_of(pod), request.containers_of(ours), strict=True
    ):
        asked = percentages.get(ContainerName(str(container.get("name"))))
        is_percentage = names.GPU_MEM_PERCENTAGE in request.amounts(container)  # names may stand twice at admission
        if asked is None or asked.memory_percentage is None or not is_percentage:
            containers.append(container)
            continue
        found = percentage.resolve(asked.memory_percentage, sizes, slice_mib)
        if isinstance(found, str):
            refused.append(_problem(path, written, found))
            continue
        said.append(_problem(path, written, percentage.given(found, sizes, slice_mib)))
        total = {names.GPU_MEM: str(found.memory_mib * asked.gpus)}
        containers.append(replaced(container, {names.GPU_MEM_PERCENTAGE}, total))
    if refused:
        return TranslatedPod(pod, None, tuple(refused))
    return _parsed(with_containers(ours, containers), tuple(said))


def _parsed(pod: Json, resolved: tuple[Problem, ...]) -> TranslatedPod:
    parsed = request.parse(pod)
    return TranslatedPod(pod, None if parsed.problems else parsed.request, parsed.problems, resolved)


def _problem(path: str, container: Json, why: str) -> Problem:
    """Return what is to be said of a container's percentage, by the name that the user wrote."""
    amounts = request.amounts(container)
    written = [name for name in (names.GPU_MEM_PERCENTAGE, *_FOREIGN_PERCENTAGES) if name in amounts]
    if not written:
        written = [family.cores for family in aliases.FAMILIES if family.cores in amounts]
        why = f"asks for all memory too, which {why}"
    return Problem(f"{path}.resources.limits[{written[0]}]", amounts[written[0]], why)
