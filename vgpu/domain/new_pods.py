"""What is wrong in a new pod that asks for GPUs, as far as its manifest alone says: admission and simulations ask here.

The pod may be as its user wrote it, or as the webhook has completed it. What only the API server knows, such as the
highest priority of the pod's namespace, is not looked at.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Final

from vgpu.domain import names, quantity, suggestion
from vgpu.domain.asks import gang, idle, manifest, other_names, request
from vgpu.domain.asks.translate import TranslatedPod
from vgpu.domain.formats import container_paths
from vgpu.domain.identifiers import ContainerName
from vgpu.domain.json_types import Json
from vgpu.domain.problem import Problem

VISIBLE_DEVICES: Final = "NVIDIA_VISIBLE_DEVICES"
NO_DEVICES: Final = frozenset({"void", "none"})  # values of it that hand over no card
_GITHUB_SCHEDULER: Final = "ACTIONS_RUNNER_USE_KUBE_SCHEDULER"  # otherwise their jobs name the runner's node
_NVIDIA_DEVICES: Final = ("nvidia.com/gpu", "nvidia.com/mig-")
_NEIGHBOURS: Final = (
    names.GPU_AFFINITY, names.GPU_ANTI_AFFINITY, names.PREFERRED_GPU_AFFINITY, names.PREFERRED_GPU_ANTI_AFFINITY,
)  # fmt: skip
_KNOWN_ANNOTATIONS: Final = frozenset(
    (*names.USER_ANNOTATIONS, *names.LIVE_ANNOTATIONS, *names.STATE_ANNOTATIONS, names.AS_WRITTEN)
)


def problems(translated: TranslatedPod, slice_mib: int) -> list[Problem]:
    """Return everything that is wrong in a translated pod; `slice_mib` are the MiB of a memory slice."""
    pod = translated.pod
    if request.TOO_MANY_CONTAINERS in translated.problems:
        return [request.TOO_MANY_CONTAINERS]
    found = [*translated.problems] or [*_kubelet_resources(translated, slice_mib), *_nvidia_plugin(pod)]
    found += _requests_beside_limits(pod)
    found += _unknown_annotations(pod)
    found += _impossible_neighbours(pod)
    found += gang.conflicts(pod)
    found += idle.read(manifest.annotations(pod))[1]
    found += _node_set_by_hand(pod)
    for path, container in manifest.every_container(pod):
        found += visible_devices(path, container)
        found += reserved_mounts(path, container)
    for path, container in manifest.ephemeral_containers(pod):
        found += no_gpu(path, container)
    return found


def visible_devices(path: str, container: Json) -> Iterator[Problem]:
    """Yield a problem for each NVIDIA_VISIBLE_DEVICES: NVIDIA's runtime would hand over the cards that it names."""
    harmless = frozenset() if manifest.asks(container) else NO_DEVICES
    for variable in container.get("env") or ():
        if variable.get("name") == VISIBLE_DEVICES and variable.get("value") not in harmless:
            why = "decides which cards the runtime hands over, and is set by the device plugin; leave it out"
            yield Problem(f"{path}.env[{VISIBLE_DEVICES}]", variable.get("value") or "", why)


def reserved_mounts(path: str, container: Json) -> Iterator[Problem]:
    """Yield a problem for each volume that would cover files of vgpushare in a container."""
    for mount in container.get("volumeMounts") or ():
        at = mount.get("mountPath") or ""
        if container_paths.is_reserved(at):
            why = (
                f"would cover vgpushare's own files ({', '.join(container_paths.RESERVED)}); mount the volume elsewhere"
            )
            yield Problem(f"{path}.volumeMounts[{mount.get('name')}].mountPath", at, why)


def no_gpu(path: str, container: Json) -> Iterator[Problem]:
    """Yield a problem for an ephemeral container that asks for a GPU."""
    if manifest.asks(container):
        yield Problem(f"{path}.resources", "", "an ephemeral container cannot be given a GPU")


def _kubelet_resources(translated: TranslatedPod, slice_mib: int) -> Iterator[Problem]:
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
        for key in written.keys() - ({name} if quantity.whole_number(written.get(name, "")) == amount else set()):
            why = f"is added by the webhook, as {name}: {amount}; leave it out"
            yield Problem(f"{path}.resources.limits[{key}]", written[key], why)


def _requests_beside_limits(pod: Json) -> Iterator[Problem]:
    """Yield a problem for each amount that the API server refuses: requests of these names are equal to their limits.

    https://kubernetes.io/docs/tasks/configure-pod-container/extended-resource/
    """
    for path, _, container in request.containers_of(pod):
        resources = container.get("resources") or {}
        limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
        for name, requested in requests.items():
            if not name.startswith(f"{names.DOMAIN}/"):
                continue
            if name not in limits:
                why = f"must be set for {names.DOMAIN}'s resources: write the amount here instead of in requests"
                yield Problem(f"{path}.resources.limits[{name}]", "", why)
            elif _number(requested) != _number(limits[name]):
                why = f"must be equal to the limit of {limits[name]}; leave it out"
                yield Problem(f"{path}.resources.requests[{name}]", str(requested), why)


def _number(amount: str | int) -> int | str:
    number = quantity.whole_number(amount)
    return str(amount) if number is None else number


def _nvidia_plugin(pod: Json) -> Iterator[Problem]:
    """Yield a problem for the devices of NVIDIA's plugin that stay after translation: it runs on other nodes.

    An amount of 0 asks for none, and the scheduler ignores it.
    """
    for path, _, container in request.containers_of(pod):
        for name, amount in request.amounts(container).items():
            if name.startswith(_NVIDIA_DEVICES) and quantity.whole_number(amount) != 0:
                why = (
                    f"is given out by NVIDIA's device plugin, on other nodes; for whole cards ask for {names.GPU} alone"
                    if other_names.is_of_nvidia(name)
                    else other_names.not_known(name)
                )
                yield Problem(f"{path}.resources.limits[{name}]", amount, why)


def _unknown_annotations(pod: Json) -> Iterator[Problem]:
    """Yield a problem for each annotation of ours that does not exist: its name is wrong, whatever its value."""
    for name in manifest.annotations(pod):
        if name.startswith(f"{names.DOMAIN}/") and name not in _KNOWN_ANNOTATIONS:
            instead = suggestion.instead_of(name, (*names.USER_ANNOTATIONS, *names.LIVE_ANNOTATIONS))
            if name in names.USER_RESOURCES:
                instead = "it is a resource, write it in resources.limits of a container"
            yield Problem(f"metadata.annotations[{name}]", "", f"is not an annotation of {names.DOMAIN}; {instead}")


def _impossible_neighbours(pod: Json) -> Iterator[Problem]:
    """Yield a problem for labels that no pod can have: a pod has one value of each label."""
    annotations = manifest.annotations(pod)
    for name in _NEIGHBOURS:
        pairs = {word.strip() for word in annotations.get(name, "").split(",") if "=" in word}
        keys = Counter(pair.partition("=")[0] for pair in pairs)
        if twice := sorted(key for key, count in keys.items() if count > 1):
            why = f"names two values of the label {twice[0]}, and all labels must be those of one pod; name one value"
            yield Problem(f"metadata.annotations[{name}]", annotations[name], why)


def _node_set_by_hand(pod: Json) -> Iterator[Problem]:
    node = pod.get("spec", {}).get("nodeName")
    if node:
        why = (
            "would bypass the scheduler, which assigns the cards; use nodeSelector or affinity, "
            f"and with GitHub's runners {_GITHUB_SCHEDULER}=true"
        )
        yield Problem("spec.nodeName", node, why)
