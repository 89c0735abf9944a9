"""Finds, by field, what is invalid in a pod and what users must not write.

On CREATE everything is validated. On UPDATE only the changes are, so that a pod that was created without the webhook
can still be labelled, resized, finalized and reported on.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from vgpu.domain import names, new_pods
from vgpu.domain.asks import foreign_annotations, gang, idle, manifest, request, translate
from vgpu.domain.identifiers import ContainerName
from vgpu.domain.json_types import Json
from vgpu.domain.problem import Problem
from webhook.rules import AdmissionSettings

MAX_LISTED: Final = 20


def on_create(pod: Json, rules: AdmissionSettings) -> list[Problem]:
    """Return the problems of a new pod, after all mutation."""
    problems = forged(pod)
    if not manifest.wants_gpu(pod):
        return problems
    translated = translate.translate(pod, rules.cards, rules.gpushare_unit_mib, rules.slice_mib)
    added = _not_added(translated, rules.slice_mib)
    return [*problems, *added, *new_pods.problems(translated, rules.slice_mib)]


def forged(pod: Json) -> list[Problem]:
    """Return a problem for each annotation that only the Binding may write, on a pod that is not bound.

    The webhook has removed it from a copy of a pod, unless that call failed or the pod is a static one's mirror.
    """
    why = "is written when the pod is bound, and never by a user; it was not removed: create the pod again"
    return [
        Problem(_annotation(name), value, why)
        for name, value in manifest.annotations(pod).items()
        if name in names.STATE_ANNOTATIONS
    ]


def on_update(old: Json, new: Json) -> list[Problem]:
    """Return the problems of a pod's changes."""
    before, after = manifest.annotations(old), manifest.annotations(new)
    changed = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
    problems = [
        Problem(_annotation(name), after.get(name, ""), "cannot be changed: it is written once, when the pod is bound")
        for name in names.STATE_ANNOTATIONS
        if name in changed
    ]
    if not manifest.wants_gpu(new):
        return problems
    problems += _changed_options(old, new, changed)
    known = {container.get("name") for _, container in manifest.ephemeral_containers(old)}
    for path, container in manifest.ephemeral_containers(new):
        if container.get("name") not in known:
            problems += new_pods.visible_devices(path, container)
            problems += _cards_of_image(path, container)
            problems += new_pods.reserved_mounts(path, container)
            problems += new_pods.no_gpu(path, container)
    return problems


def message(problems: Sequence[Problem]) -> str:
    """Return the message for the user: one line for each problem."""
    listed = "\n".join(str(problem) for problem in problems[:MAX_LISTED])
    rest = len(problems) - MAX_LISTED
    return f"{listed}\nand {rest} more" if rest > 0 else listed


def _annotation(name: str) -> str:
    return f"metadata.annotations[{name}]"


def _not_added(translated: translate.TranslatedPod, slice_mib: int) -> Iterator[Problem]:
    """Yield a problem for each container without the slices or cards that the webhook adds."""
    asked = translated.asked
    containers = {c.name: c for c in asked.containers} if asked else {}
    for path, _, container in request.containers_of(translated.pod):
        mine = containers.get(ContainerName(str(container.get("name"))))
        if asked and mine and request.amounts(container).keys().isdisjoint(names.KUBELET_RESOURCES):
            name, _ = asked.kubelet_resource(mine, slice_mib)
            yield Problem(f"{path}.resources.limits[{name}]", "", "was not added: create the pod again")


def _cards_of_image(path: str, container: Json) -> Iterator[Problem]:
    """Yield a problem for an ephemeral container whose image may choose cards: the webhook keeps it from doing so."""
    if all(variable.get("name") != new_pods.VISIBLE_DEVICES for variable in container.get("env") or ()):
        yield Problem(f"{path}.env[{new_pods.VISIBLE_DEVICES}]", "", "was not added: try again, or set it to void")


def _changed_options(old: Json, new: Json, changed: set[str]) -> Iterator[Problem]:
    """Yield the problems of changed options: a bound pod's are fixed, because it is accounted by them."""
    annotations = manifest.annotations(new)
    for name in sorted(foreign_annotations.NAMES & changed):
        why = f"was translated when the pod was created, and cannot be changed; set annotations of {names.DOMAIN}"
        yield Problem(_annotation(name), annotations.get(name, ""), why)
    yield from _added(idle.read(manifest.annotations(old))[1], idle.read(annotations)[1])
    if old.get("spec", {}).get("nodeName"):
        for name in names.USER_ANNOTATIONS:
            if name in changed:
                why = "cannot be changed once the pod is bound to a node"
                yield Problem(_annotation(name), annotations.get(name, ""), why)
        return
    yield from _added(_of_request(old), _of_request(new))


def _added(before: Sequence[Problem], after: Sequence[Problem]) -> list[Problem]:
    return [problem for problem in after if problem not in before]


def _of_request(pod: Json) -> list[Problem]:
    """Return what is wrong with a pod's request, also where one annotation does not fit another."""
    return [*request.parse(pod).problems, *gang.conflicts(pod)]
