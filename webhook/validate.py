"""Refuses, by field, what makes no sense and what is not a user's to write.

On CREATE everything is judged. On UPDATE only what changed is, so that a pod that came in before us, or while we were
away, can still be labelled, resized, finalized and reported on.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from vgpu import names, policy, quantity, request
from vgpu.problem import Problem
from vgpu.request import Json
from webhook import pods, translate
from webhook.rules import Rules

VISIBLE_DEVICES: Final = "NVIDIA_VISIBLE_DEVICES"
NO_DEVICES: Final = frozenset({"void", "none"})
MOST_LISTED: Final = 20
_KNOWN_ANNOTATIONS: Final = frozenset((*names.USER_ANNOTATIONS, *names.STATE_ANNOTATIONS))


def on_create(pod: Json, rules: Rules) -> list[Problem]:
    """Judge a new pod, as it is after all mutation."""
    problems = forged(pod)
    if not pods.wants_gpu(pod):
        return problems
    translated = translate.translate(pod, rules)
    problems += translated.problems or _kubelet_resources(translated, rules.slice_mib)
    problems += _unknown_annotations(pod)
    problems += _placed_by_hand(pod)
    for path, container in pods.every_container(pod):
        problems += _visible_devices(path, container)
    for path, container in pods.ephemeral_containers(pod):
        problems += _no_gpu(path, container)
    return problems


def forged(pod: Json) -> list[Problem]:
    """Find what only the Binding may write, on a pod that is not bound yet."""
    return [
        Problem(_annotation(name), value, "is written when the pod is bound, and never by a user")
        for name, value in pods.annotations(pod).items()
        if name in names.STATE_ANNOTATIONS
    ]


def on_update(old: Json, new: Json) -> list[Problem]:
    """Judge what changed of a pod."""
    before, after = pods.annotations(old), pods.annotations(new)
    changed = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
    problems = [
        Problem(_annotation(name), after.get(name, ""), "cannot be changed: it is written once, when the pod is bound")
        for name in names.STATE_ANNOTATIONS
        if name in changed
    ]
    if not pods.wants_gpu(new):
        return problems
    problems += _changed_wishes(old, new, changed)
    known = {container.get("name") for _, container in pods.ephemeral_containers(old)}
    for path, container in pods.ephemeral_containers(new):
        if container.get("name") not in known:
            problems += _visible_devices(path, container)
            problems += _no_gpu(path, container)
    return problems


def message(problems: Sequence[Problem]) -> str:
    """Say all problems to the user, one a line after the first."""
    listed = "\n".join(str(problem) for problem in problems[:MOST_LISTED])
    rest = len(problems) - MOST_LISTED
    return f"{listed}\nand {rest} more" if rest > 0 else listed


def _annotation(name: str) -> str:
    return f"metadata.annotations[{name}]"


def _kubelet_resources(translated: translate.TranslatedPod, slice_mib: int) -> Iterator[Problem]:
    """Slices and cards are ours to add: each GPU container has exactly what its request comes to."""
    asked = translated.asked
    containers = {c.name: c for c in asked.containers} if asked else {}
    for path, _, container in request.containers_of(translated.pod):
        mine = containers.get(str(container.get("name")))
        if asked is None or mine is None:
            continue
        name, amount = asked.kubelet_resource(mine, slice_mib)
        amounts = request.amounts(container)
        written = {key: amounts[key] for key in names.KUBELET_RESOURCES if key in amounts}
        if not written:
            yield Problem(f"{path}.resources.limits[{name}]", "", "was not added: create the pod again")
        for key in written.keys() - ({name} if quantity.whole_number(written.get(name, "")) == amount else set()):
            why = f"is ours to add, and would be {name}: {amount}; leave it out"
            yield Problem(f"{path}.resources.limits[{key}]", written[key], why)


def _unknown_annotations(pod: Json) -> Iterator[Problem]:
    for name, value in pods.annotations(pod).items():
        if name.startswith(f"{names.DOMAIN}/") and name not in _KNOWN_ANNOTATIONS:
            known = ", ".join(names.USER_ANNOTATIONS)
            yield Problem(_annotation(name), value, f"is not an annotation of {names.DOMAIN}; known: {known}")


def _placed_by_hand(pod: Json) -> Iterator[Problem]:
    node = pod.get("spec", {}).get("nodeName")
    if node:
        why = "would go round the scheduler, which gives out the cards; use nodeSelector or affinity"
        yield Problem("spec.nodeName", node, why)


def _visible_devices(path: str, container: Json) -> Iterator[Problem]:
    """The nvidia runtime hands over whatever cards this variable names; beside a request it would undo ours."""
    harmless = frozenset() if pods.asks(container) else NO_DEVICES
    for variable in container.get("env") or ():
        if variable.get("name") == VISIBLE_DEVICES and variable.get("value") not in harmless:
            why = "decides which cards the runtime hands over, and is ours to set; leave it out"
            yield Problem(f"{path}.env[{VISIBLE_DEVICES}]", variable.get("value") or "", why)


def _no_gpu(path: str, container: Json) -> Iterator[Problem]:
    if pods.asks(container):
        yield Problem(f"{path}.resources", "", "an ephemeral container cannot be given a GPU")


def _changed_wishes(old: Json, new: Json, changed: set[str]) -> Iterator[Problem]:
    """A bound pod is accounted by its annotations, so they stand; a waiting pod may change its mind."""
    annotations = pods.annotations(new)
    if old.get("spec", {}).get("nodeName"):
        for name in names.USER_ANNOTATIONS:
            if name in changed:
                why = "cannot be changed once the pod is bound to a node"
                yield Problem(_annotation(name), annotations.get(name, ""), why)
        return
    fields = {_annotation(name) for name in changed}
    yield from (problem for problem in policy.parse(annotations)[1] if problem.field in fields)
