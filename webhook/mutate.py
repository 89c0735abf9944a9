"""Adds to a pod what the kubelet, the scheduler and people need; values that a user has set stay.

`mutate` returns the completed pod, `patch` the JSON patch between two pods. Mutation is idempotent.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from vgpu.domain import names, new_pods
from vgpu.domain.asks import aliases, manifest, policy, request, translate
from vgpu.domain.asks.request import ContainerRequest, PodRequest
from vgpu.domain.identifiers import ContainerName
from vgpu.domain.json_types import Json
from vgpu.domain.problem import Problem
from webhook import as_written, copied_state, limit_ranges
from webhook.rules import AdmissionSettings
from webhook.wire import Operation

NO_CARDS = {new_pods.VISIBLE_DEVICES: "void"}
_DEFAULT_SCHEDULERS = frozenset({"", "default-scheduler"})


@dataclass(frozen=True, slots=True)
class MutatedPod:
    """A completed pod, and what its owner should know about the changes: kubectl prints that as warnings."""

    pod: Json
    said: tuple[Problem, ...] = ()


def mutate(pod: Json, rules: AdmissionSettings) -> MutatedPod:
    """Return the completed new pod.

    Where it asks for no GPU or has problems, only what other programs have added is undone: a LimitRange's defaults,
    and what a copy has kept of the pod that it is a copy of. `validate` reports the problems, after all other webhooks
    have changed the pod.
    """
    removed = tuple(copied_state.removed(pod))
    pod = limit_ranges.without_defaulted_cores(copied_state.without(pod))
    translated = translate.translate(pod, rules.cards, rules.gpushare_unit_mib, rules.slice_mib)
    asked = translated.asked
    if asked is None:
        return MutatedPod(pod, removed)
    by_name = {container.name: container for container in asked.containers}
    containers = [
        _completed(container, asked, by_name.get(ContainerName(str(container.get("name")))), rules.slice_mib)
        for _, _, container in request.containers_of(translated.pod)
    ]
    completed = translate.with_containers(translated.pod, containers)
    scheduled = {**completed, "spec": _scheduled(completed["spec"], rules.scheduler)}
    return MutatedPod(as_written.recorded(pod, scheduled), (*removed, *translated.resolved))


def mutate_changed(old: Json, new: Json, rules: AdmissionSettings) -> MutatedPod:
    """Return a changed pod without what the webhook had changed at its creation: its manifest was applied again."""
    kept = copied_state.kept(old, as_written.undone(old, new))
    if old["spec"].get("schedulerName") == rules.scheduler:
        kept = {**kept, "spec": _scheduled(kept["spec"], rules.scheduler)}
    return MutatedPod(kept, tuple(copied_state.changed(old, new)))


def mutate_debugged(old: Json, new: Json) -> Json:
    """Return a pod whose new ephemeral containers get no card; an image may set NVIDIA_VISIBLE_DEVICES=all."""
    if not manifest.wants_gpu(new):
        return new
    known = {container.get("name") for _, container in manifest.ephemeral_containers(old)}
    debuggers = [
        container if container.get("name") in known else _with_environment(container, NO_CARDS)
        for _, container in manifest.ephemeral_containers(new)
    ]
    return {**new, "spec": {**new["spec"], "ephemeralContainers": debuggers}} if debuggers else new


def patch(before: Json, after: Json) -> list[Operation]:
    """Return the JSON patch from one pod to the other; lists may differ by items appended at the end only."""
    return [] if after is before else list(_differences("", before, after))


def _completed(container: Json, asked: PodRequest, mine: ContainerRequest | None, slice_mib: int) -> Json:
    if mine is None:
        return _with_environment(container, NO_CARDS)
    name, amount = asked.kubelet_resource(mine, slice_mib)
    written = request.amounts(container).keys() & set(names.KUBELET_RESOURCES)
    counted = container if written else translate.replaced(container, (), {name: str(amount)})
    return _with_environment(counted, environment(asked, mine))


def environment(asked: PodRequest, container: ContainerRequest) -> dict[str, str]:
    """Return the limits on each card as variables for people and frameworks; the limits file is what is enforced."""
    if container.whole:
        return {}
    limits = {names.MEMORY_ENV: f"{container.memory_mib}MiB"}
    if container.cores is not None:
        limits[names.CORES_ENV] = str(container.cores)
    limits[names.COMPUTE_POLICY_ENV] = asked.options.compute_policy or policy.default_compute_policy(container.cores)
    if asked.options.memory_policy is not None:
        limits[names.MEMORY_POLICY_ENV] = asked.options.memory_policy
    return limits


def _with_environment(container: Json, wanted: Mapping[str, str]) -> Json:
    present = container.get("env") or []
    taken = {variable.get("name") for variable in present}
    added = [{"name": name, "value": value} for name, value in wanted.items() if name not in taken]
    return {**container, "env": [*present, *added]} if added else container


def _scheduled(spec: Json, scheduler: str) -> Json:
    """Set the scheduler, unless the owner chose one; a foreign project's scheduler cannot read vgpushare's names."""
    chosen = spec.get("schedulerName") or ""
    is_replaced = chosen in _DEFAULT_SCHEDULERS or chosen in aliases.SCHEDULERS
    return {**spec, "schedulerName": scheduler} if is_replaced else spec


def _differences(path: str, before: Any, after: Any) -> Iterator[Operation]:
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        yield from _of_objects(path, before, after)
    elif isinstance(before, list) and isinstance(after, list):
        for index, (old, new) in enumerate(zip(before, after, strict=False)):
            yield from _differences(f"{path}/{index}", old, new)
        yield from ({"op": "add", "path": f"{path}/-", "value": new} for new in after[len(before) :])
    elif before != after:
        yield {"op": "replace", "path": path, "value": after}


def _of_objects(path: str, before: Json, after: Json) -> Iterator[Operation]:
    for key in before.keys() | after.keys():
        pointer = f"{path}/{key.replace('~', '~0').replace('/', '~1')}"
        if key not in after:
            yield {"op": "remove", "path": pointer}
        elif key not in before or before[key] is None:
            yield {"op": "add", "path": pointer, "value": after[key]}
        else:
            yield from _differences(pointer, before[key], after[key])
