"""Finds, by field, what is invalid in a pod and what users must not write.

On CREATE everything is validated. On UPDATE only the changes are, so that a pod that was created without the webhook
can still be labelled, resized, finalized and reported on.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from vgpu.domain import names, quantity, suggestion
from vgpu.domain.asks import foreign_annotations, gang, idle, manifest, request, translate
from vgpu.domain.formats import container_paths
from vgpu.domain.identifiers import ContainerName
from vgpu.domain.json_types import Json
from vgpu.domain.problem import Problem
from webhook import pods
from webhook.rules import AdmissionSettings

NO_DEVICES: Final = frozenset({"void", "none"})
MAX_LISTED: Final = 20
_GITHUB_SCHEDULER: Final = "ACTIONS_RUNNER_USE_KUBE_SCHEDULER"  # otherwise their jobs name the runner's node
_NVIDIA_DEVICES: Final = ("nvidia.com/gpu", "nvidia.com/mig-")
_KNOWN_ANNOTATIONS: Final = frozenset(
    (*names.USER_ANNOTATIONS, *names.LIVE_ANNOTATIONS, *names.STATE_ANNOTATIONS, names.AS_WRITTEN)
)


def on_create(pod: Json, rules: AdmissionSettings) -> list[Problem]:
    """Return the problems of a new pod, after all mutation."""
    problems = forged(pod)
    if not manifest.wants_gpu(pod):
        return problems
    if request.has_too_many_containers(pod, manifest.asks):
        return [*problems, request.TOO_MANY_CONTAINERS]
    translated = translate.translate(pod, rules.cards, rules.gpushare_unit_mib, rules.slice_mib)
    problems += translated.problems or [*_kubelet_resources(translated, rules.slice_mib), *_nvidia_plugin(translated)]
    problems += _unknown_annotations(pod)
    problems += gang.conflicts(pod)
    problems += idle.read(manifest.annotations(pod))[1]
    problems += _node_set_by_hand(pod)
    for path, container in manifest.every_container(pod):
        problems += _visible_devices(path, container)
        problems += _reserved_mounts(path, container)
    for path, container in manifest.ephemeral_containers(pod):
        problems += _no_gpu(path, container)
    return problems


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
            problems += _visible_devices(path, container)
            problems += _cards_of_image(path, container)
            problems += _reserved_mounts(path, container)
            problems += _no_gpu(path, container)
    return problems


def message(problems: Sequence[Problem]) -> str:
    """Return the message for the user: one line for each problem."""
    listed = "\n".join(str(problem) for problem in problems[:MAX_LISTED])
    rest = len(problems) - MAX_LISTED
    return f"{listed}\nand {rest} more" if rest > 0 else listed


def _annotation(name: str) -> str:
    return f"metadata.annotations[{name}]"


def _kubelet_resources(translated: translate.TranslatedPod, slice_mib: int) -> Iterator[Problem]:
    """Yield a problem for each slice or card that does not follow from the request: the webhook adds them."""
    asked = translated.asked
    containers = {c.name: c for c in asked.containers} if asked else {}
    for path, _, container in request.containers_of(translated.pod):
        mine = containers.get(ContainerName(str(container.get("name"))))
        if asked is None or mine is None:
            continue
        name, amount = asked.kubelet_resource(mine, slice_mib)
        amounts = request.amounts(container)
        written = {key: amounts[key] for key in names.KUBELET_RESOURCES if key in amounts}
        if not written:
            yield Problem(f"{path}.resources.limits[{name}]", "", "was not added: create the pod again")
        for key in written.keys() - ({name} if quantity.whole_number(written.get(name, "")) == amount else set()):
            why = f"is added by the webhook, as {name}: {amount}; leave it out"
            yield Problem(f"{path}.resources.limits[{key}]", written[key], why)


def _nvidia_plugin(translated: translate.TranslatedPod) -> Iterator[Problem]:
    """Yield a problem for the devices of NVIDIA's plugin that stay after translation: it runs on other nodes.

    An amount of 0 asks for none, and the scheduler ignores it.
    """
    for path, _, container in request.containers_of(translated.pod):
        for name, amount in request.amounts(container).items():
            if name.startswith(_NVIDIA_DEVICES) and quantity.whole_number(amount) != 0:
                why = (
                    f"is given out by NVIDIA's device plugin, on other nodes; for whole cards ask for {names.GPU} alone"
                )
                yield Problem(f"{path}.resources.limits[{name}]", amount, why)


def _unknown_annotations(pod: Json) -> Iterator[Problem]:
    """Yield a problem for each annotation of ours that does not exist: its name is wrong, whatever its value."""
    for name in manifest.annotations(pod):
        if name.startswith(f"{names.DOMAIN}/") and name not in _KNOWN_ANNOTATIONS:
            instead = suggestion.instead_of(name, (*names.USER_ANNOTATIONS, *names.LIVE_ANNOTATIONS))
            yield Problem(_annotation(name), "", f"is not an annotation of {names.DOMAIN}; {instead}")


def _node_set_by_hand(pod: Json) -> Iterator[Problem]:
    node = pod.get("spec", {}).get("nodeName")
    if node:
        why = (
            "would bypass the scheduler, which assigns the cards; use nodeSelector or affinity, "
            f"and with GitHub's runners {_GITHUB_SCHEDULER}=true"
        )
        yield Problem("spec.nodeName", node, why)


def _visible_devices(path: str, container: Json) -> Iterator[Problem]:
    """Yield a problem for each NVIDIA_VISIBLE_DEVICES: NVIDIA's runtime would hand over the cards that it names."""
    harmless = frozenset() if manifest.asks(container) else NO_DEVICES
    for variable in container.get("env") or ():
        if variable.get("name") == pods.VISIBLE_DEVICES and variable.get("value") not in harmless:
            why = "decides which cards the runtime hands over, and is set by the device plugin; leave it out"
            yield Problem(f"{path}.env[{pods.VISIBLE_DEVICES}]", variable.get("value") or "", why)


def _cards_of_image(path: str, container: Json) -> Iterator[Problem]:
    """Yield a problem for an ephemeral container whose image may choose cards: the webhook keeps it from doing so."""
    if all(variable.get("name") != pods.VISIBLE_DEVICES for variable in container.get("env") or ()):
        yield Problem(f"{path}.env[{pods.VISIBLE_DEVICES}]", "", "was not added: try again, or set it to void")


def _reserved_mounts(path: str, container: Json) -> Iterator[Problem]:
    for mount in container.get("volumeMounts") or ():
        at = mount.get("mountPath") or ""
        if container_paths.is_reserved(at):
            why = (
                f"would cover vgpushare's own files ({', '.join(container_paths.RESERVED)}); mount the volume elsewhere"
            )
            yield Problem(f"{path}.volumeMounts[{mount.get('name')}].mountPath", at, why)


def _no_gpu(path: str, container: Json) -> Iterator[Problem]:
    if manifest.asks(container):
        yield Problem(f"{path}.resources", "", "an ephemeral container cannot be given a GPU")


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
