"""Names by which a pod seems to ask for GPUs, and by which vgpushare gives none: other tools' names, and misspelt ones.

Such a pod may be meant for another tool, so it is never refused for them: explanations, simulations and warnings say
what to write for vgpushare.
"""

from collections.abc import Iterator
from typing import Final

from vgpu.domain import names, quantity, suggestion
from vgpu.domain.asks import aliases, manifest, request
from vgpu.domain.json_types import Json
from vgpu.domain.problem import Problem, clipped

_PREFIX: Final = f"{names.DOMAIN}/"
_CARDS: Final = ("nvidia.com/gpu", "nvidia.com/gpu.shared")  # https://github.com/NVIDIA/k8s-device-plugin
_MIG: Final = "nvidia.com/mig-"
_OUR_DOMAIN: Final = "vgpu"  # is in ours, and in what people take for ours: vgpushare.io
_KNOWN: Final = frozenset({*_CARDS}).union(aliases.REFUSED, *(family.all_names() for family in aliases.FAMILIES))
_TO_WRITE: Final = f"write {names.GPU_MEM} for a share, or {names.GPU} for whole cards"
_WAITS: Final = "where no node offers it, the pod waits; for vgpushare write"
_MISSPELT: Final = f"is not given out by vgpushare: {_WAITS} {names.GPU_MEM}, in MiB"
_FRACTIONS: Final = "is read by KAI Scheduler and Run:ai, and not by vgpushare; for vgpushare write"
_SCHEDULERS: Final = frozenset({"default-scheduler", names.SCHEDULER})

# What the policy `vgpu-other-names` says, for resources and for annotations; true also where the tool is installed.
WARNED_RESOURCES: Final = {
    "nvidia.com/gpu.shared": (
        "is given out by NVIDIA's device plugin, and not by vgpushare: "
        f"{_WAITS} {names.GPU_MEM} for a share, in MiB, or {names.GPU} for whole cards"
    ),
    "nvidia.com/gpu-mem": _MISSPELT,
    "nvidia.com/gpu-memory": _MISSPELT,
}
WARNED_ANNOTATIONS: Final = {  # https://github.com/NVIDIA/KAI-Scheduler
    "gpu-fraction": (f"{_FRACTIONS} {names.GPU_MEM_PERCENTAGE} in resources.limits of a container: 50 in place of 0.5"),
    "gpu-memory": f"{_FRACTIONS} {names.GPU_MEM} in resources.limits of a container, in MiB too",
}


def why_none(pod: Json) -> str:
    """Return why a pod without vgpushare's resources gets no GPU of it, and what to write: words about the pod."""
    if asked := next(of_nvidia(pod), None):
        resource, amount = asked
        return (
            f"asks NVIDIA's device plugin for cards ({resource}: {amount}), and vgpushare does not place it: "
            f"write {names.GPU}: {amount} for whole cards of vgpushare, or {names.GPU_MEM} for a share"
        )
    if misspelt := next(_misspelt(pod), None):
        _, resource, amount = misspelt
        return f"asks for {clipped(resource)}: {clipped(amount)}, which vgpushare does not know; {_instead(resource)}"
    if fraction := next(_of_fractions(pod), None):
        name, value, why = fraction
        return f"asks for no GPU by its resources; its annotation {name}: {clipped(value)} {why}"
    if elsewhere := next(_outside_of_resources(pod), None):
        where, name = elsewhere
        return (
            f"asks for no GPU: {name} among its {where} asks for none; {_TO_WRITE}, in resources.limits of a container"
        )
    return f"asks for no GPU: {_TO_WRITE}"


def warnings(pod: Json) -> Iterator[Problem]:
    """Yield what the policy `vgpu-other-names` warns of in a pod that names no other tool's scheduler.

    Nothing is said of a pod that asks by vgpushare's names, or by names that become them: the webhook reads that one.
    """
    scheduler = (pod.get("spec") or {}).get("schedulerName") or "default-scheduler"
    if scheduler not in _SCHEDULERS or manifest.wants_gpu(pod):
        return
    asked = dict(_amounts(pod))
    for resource, why in WARNED_RESOURCES.items():
        if resource in asked:
            yield Problem(f"resources.limits[{resource}]", asked[resource], why)
    for name, value, why in _of_fractions(pod):
        yield Problem(f"metadata.annotations[{name}]", value, why)


def misspelt(pod: Json) -> Iterator[Problem]:
    """Yield what to write for each resource that is like one of vgpushare's, and is none."""
    for path, resource, amount in _misspelt(pod):
        yield Problem(f"{path}[{resource}]", amount, not_known(resource))


def not_known(resource: str) -> str:
    """Return why no device plugin gives out a resource, and what to write: words about it."""
    return f"is not known to vgpushare; {_instead(resource)}"


def of_others(pod: Json) -> Iterator[tuple[str, str]]:
    """Yield the resources by which a pod may have meant cards of vgpushare, with their amounts."""
    yield from of_nvidia(pod)
    yield from ((resource, amount) for _, resource, amount in _misspelt(pod))


def of_nvidia(pod: Json) -> Iterator[tuple[str, str]]:
    """Yield the resources of NVIDIA's device plugin that a pod asks for, with their amounts."""
    for resource, amount in _amounts(pod):
        if is_of_nvidia(resource) and quantity.whole_number(amount) != 0:
            yield resource, amount


def is_of_nvidia(resource: str) -> bool:
    """Whether NVIDIA's device plugin gives out a resource."""
    return resource in _CARDS or resource.startswith(_MIG)


def is_taken_for_ours(name: str) -> bool:
    """Whether a name is in a domain that people take for ours, such as vgpushare.io."""
    return _OUR_DOMAIN in name.rpartition("/")[0].lower() and not name.startswith(_PREFIX)


def _amounts(pod: Json) -> Iterator[tuple[str, str]]:
    """Yield the resources that the containers of a pod ask for, with their amounts."""
    for _, _, container in request.containers_of(pod):
        yield from request.amounts(container).items()


def _of_fractions(pod: Json) -> Iterator[tuple[str, str, str]]:
    """Yield name, value and words of each annotation by which a pod asks another tool for a part of a card."""
    annotations = manifest.annotations(pod)
    for name, why in WARNED_ANNOTATIONS.items():
        if name in annotations:
            yield name, annotations[name], why


def _misspelt(pod: Json) -> Iterator[tuple[str, str, str]]:
    """Yield field path, name and amount of each resource that resembles one of ours, in another domain."""
    for path, _, container in request.containers_of(pod):
        for resource, amount in request.amounts(container).items():
            if _resembles_ours(resource):
                yield f"{path}.resources.limits", resource, amount


def _resembles_ours(resource: str) -> bool:
    """Whether a name is meant as ours: by its domain, or as an amount. `amd.com/gpu` has a plugin of its own."""
    name = resource.rpartition("/")[2]
    if resource.startswith(_PREFIX) or resource in _KNOWN:
        return False
    return is_taken_for_ours(resource) or (name.lower() != "gpu" and _ours_like(name) is not None)


def _ours_like(name: str) -> str | None:
    return suggestion.nearest(f"{_PREFIX}{name}", names.USER_RESOURCES, suggestion.CLOSE)


def _instead(resource: str) -> str:
    nearest = _ours_like(resource.rpartition("/")[2])
    return f"did you mean {nearest}?" if nearest else f"known: {', '.join(names.USER_RESOURCES)}"


def _outside_of_resources(pod: Json) -> Iterator[tuple[str, str]]:
    """Yield our names among a pod's annotations and labels, where they ask for nothing."""
    for where, found in (("annotations", manifest.annotations(pod)), ("labels", manifest.labels(pod))):
        for name in sorted(found):
            if name.startswith(_PREFIX):
                yield where, clipped(name)
