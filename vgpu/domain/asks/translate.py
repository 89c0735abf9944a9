"""Translates a pod's foreign resource names into ours, and percentages of memory into MiB.

The outcome is a new pod with its request, or the list of problems.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from vgpu.domain import names, quantity
from vgpu.domain.asks import aliases, foreign_annotations, manifest, request
from vgpu.domain.asks.policy import CardSelector
from vgpu.domain.asks.request import ContainerRequest, PodRequest
from vgpu.domain.cards.device import Card, CardMode
from vgpu.domain.json_types import Json
from vgpu.domain.problem import Problem


@dataclass(frozen=True, slots=True)
class TranslatedPod:
    """A pod in our own names.

    Attributes:
        pod: the translated pod; the original one where there are problems.
        asked: the pod's request; None where it asks for no GPU, or where there are problems.
        problems: by the names that the user wrote.
    """

    pod: Json
    asked: PodRequest | None
    problems: tuple[Problem, ...] = ()


def translate(pod: Json, cards: Callable[[], Iterable[Card]], gpushare_unit_mib: int) -> TranslatedPod:
    """Translate a pod into our own names and MiB.

    `cards` returns the cluster's cards, for percentages; `gpushare_unit_mib` is the MiB of one `aliyun.com/gpu-mem`.
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
    size = card_size(cards(), parsed.request.options.selector)
    if isinstance(size, str):
        return TranslatedPod(pod, None, _unresolved(pod, percentages.keys(), size))
    return _parsed(with_containers(ours, _in_mib(ours, percentages, size)))


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


def card_size(cards: Iterable[Card], selector: CardSelector) -> int | str:
    """Return the MiB of the cards that a share may be placed on, or why there is no such figure."""
    open_cards = [card for card in cards if card.mode is CardMode.SHARED and selector.refusal(card) is None]
    sizes = sorted({card.memory_mib for card in open_cards})
    if len(sizes) == 1:
        return sizes[0]
    if not sizes:
        return f"cannot be resolved: no card that the pod accepts is known; ask for {names.GPU_MEM} in MiB"
    listed = ", ".join(quantity.human_mib(size) for size in sizes)
    return f"is ambiguous on cards of {listed}; ask for {names.GPU_MEM}, or choose a model by {names.USE_GPU_MODEL}"


def _in_mib(pod: Json, percentages: Mapping[str, ContainerRequest], size: int) -> list[Json]:
    """Return the containers with percentages replaced by MiB, in total over their cards of `size` MiB each."""
    containers = []
    for _, _, container in request.containers_of(pod):
        asked = percentages.get(str(container.get("name")))
        if asked is not None:
            per_card = max(1, size * (asked.memory_percentage or 0) // quantity.WHOLE_PERCENT)
            total = {names.GPU_MEM: str(per_card * asked.gpus)}
            containers.append(replaced(container, {names.GPU_MEM_PERCENTAGE}, total))
        else:
            containers.append(container)
    return containers


def _parsed(pod: Json) -> TranslatedPod:
    parsed = request.parse(pod)
    return TranslatedPod(pod, None if parsed.problems else parsed.request, parsed.problems)


def _unresolved(pod: Json, containers: Iterable[str], why: str) -> tuple[Problem, ...]:
    """Return a problem for each container's percentage, by the name that the user wrote."""
    wanted = set(containers)
    asked = [
        (f"{path}.resources.limits", request.amounts(container))
        for path, _, container in request.containers_of(pod)
        if container.get("name") in wanted
    ]
    written = [(path, amounts, _percentage_name(amounts)) for path, amounts in asked]
    return tuple(Problem(f"{path}[{name}]", amounts.get(name, ""), why) for path, amounts, name in written)


def _percentage_name(amounts: Mapping[str, str]) -> str:
    """Return the name that a percentage was written by: a foreign percentage, or foreign cores (100 % of memory)."""
    foreign = [family.percentage for family in aliases.FAMILIES] + [family.cores for family in aliases.FAMILIES]
    return next((name for name in foreign if name in amounts), names.GPU_MEM_PERCENTAGE)
