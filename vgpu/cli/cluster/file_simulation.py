"""`vgpu simulate --cluster FILE`: where pods would be placed in a cluster whose objects are in a file; no server."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import yaml

from vgpu.cli.failure import WRONG_USAGE, CommandFailed
from vgpu.domain import new_pods
from vgpu.domain.asks import aliases, gang, host_request, manifest, node_rules, other_names, translate
from vgpu.domain.identifiers import DEFAULT_NAMESPACE, Namespace, NodeName
from vgpu.domain.json_types import JsonObject
from vgpu.placement import cluster_objects, documents, packed, room
from vgpu.placement.advice.trial import Advice
from vgpu.placement.cluster_objects import UNREADABLE, ClusterObjects, Waiting
from vgpu.placement.packed import Packed
from vgpu.placement.policies import DefaultPolicies
from vgpu.placement.simulation.advice import advise
from vgpu.placement.simulation.gangs import Ganged
from vgpu.placement.simulation.simulate import Landing, Wanted, simulate
from vgpu.placement.snapshot import NodeView

MAX_SIZE: Final = 1 << 30  # 160,000 pods have 600 MB
MAX_PODS: Final = 10_000


@dataclass(frozen=True, slots=True)
class UnplaceablePod:
    """A pod that cannot be placed, since its manifest is wrong."""

    namespace: Namespace
    name: str
    why: str


def read(path: Path) -> ClusterObjects:
    """Read a cluster: a List as `kubectl get -o json` or `-o yaml` writes it. Raises CommandFailed."""
    found = cluster_objects.read(_objects(path))
    if not found.views:
        raise CommandFailed(
            f"--cluster: {path} has no GPUNode; write it by kubectl get nodes,gpunodes,pods -A -o json", WRONG_USAGE
        )
    return found


def run(cluster: ClusterObjects, entries: Iterable[JsonObject], defaults: DefaultPolicies) -> JsonObject:
    """Place pods, or the cluster's waiting pods where there are none; return what the admin REST would answer.

    `entries` are those of `manifests.read`. Raises CommandFailed.
    """
    pods = [pod for index, entry in enumerate(entries) for pod in _pods(entry, index, cluster)] or list(cluster.waiting)
    if not 0 < len(pods) <= MAX_PODS:
        raise CommandFailed(f"-f: {len(pods)} pods to place; give 1 to {MAX_PODS}", WRONG_USAGE)
    learned = cluster.learned(defaults)
    wanted = [pod.wanted for pod in pods if isinstance(pod, Waiting)]
    if not wanted:
        first = next(pod for pod in pods if isinstance(pod, UnplaceablePod))
        raise CommandFailed(f"-f: pod {first.name}: {first.why}", WRONG_USAGE)
    outcome = simulate(wanted, cluster.views.values(), learned, tenants=cluster.tenants)
    advice = advise(wanted, outcome.landings, outcome.views.values(), learned)
    landings = list(_rows(pods, zip(outcome.landings, advice, strict=True), cluster))
    placed = sum(bool(landing["node"]) for landing in landings)
    before, after = (_packed(views, learned) for views in (cluster.views, outcome.views))
    sums = {"before": documents.packed(before, learned.demand), "after": documents.packed(after, learned.demand)}
    return {"placed": placed, "notPlaced": len(landings) - placed, **sums, "pods": landings}


def _objects(path: Path) -> Iterator[JsonObject]:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_SIZE + 1)
        if len(data) > MAX_SIZE:
            raise CommandFailed(f"--cluster: {path} is longer than {MAX_SIZE >> 20} MiB", WRONG_USAGE)
        documents_ = [json.loads(data)] if data.lstrip()[:1] == b"{" else list(yaml.safe_load_all(data))
    except (OSError, ValueError, yaml.YAMLError, RecursionError) as error:
        raise CommandFailed(f"--cluster: {path} cannot be read: {error}", WRONG_USAGE) from error
    for document in documents_:
        if isinstance(document, dict):
            listed = document.get("items") if "items" in document else [document]
            yield from listed if isinstance(listed, list) else ()


def _rows(
    pods: Iterable[Waiting | UnplaceablePod],
    landings: Iterator[tuple[Landing, tuple[Advice, ...]]],
    cluster: ClusterObjects,
) -> Iterator[JsonObject]:
    for pod, number in _numbered(pods):
        if isinstance(pod, Waiting):
            named = {"namespace": pod.namespace, "name": pod.name, "number": number}
            landing, helpful = next(landings)
            landed = {**documents.landing(landing, cluster.views), "advice": documents.advised(helpful)}
            yield {**named, "requested": documents.asked(pod.wanted.request), **landed, "problems": []}
        else:
            yield documents.unplaceable(pod.namespace, pod.name, number, [pod.why])


def _pods(entry: JsonObject, index: int, cluster: ClusterObjects) -> list[Waiting | UnplaceablePod]:
    pod, cards = entry["pod"], [card.card for view in cluster.views.values() for card in view.state.cards]
    name, count = pod["metadata"].get("name") or "pod", min(entry["count"], MAX_PODS + 1)
    namespace = pod["metadata"].get("namespace") or DEFAULT_NAMESPACE
    if unquoted := "; ".join(map(str, manifest.not_text(pod))):
        return [UnplaceablePod(namespace, name, unquoted)] * count
    try:
        found = translate.translate(pod, lambda: cards, aliases.GIB_IN_MIB, cluster.slice_mib)
        wrong = new_pods.problems(found, cluster.slice_mib) if manifest.wants_gpu(pod) else []
        host, rules = host_request.of_pod(pod["spec"]), node_rules.of_pod(pod["spec"])
    except UNREADABLE as error:
        return [UnplaceablePod(namespace, name, f"cannot be read: {error}")] * count
    if wrong or found.asked is None:
        problems = "; ".join(map(str, wrong)) or other_names.why_none(pod)
        return [UnplaceablePod(namespace, name, problems)] * count
    named = gang.parse(pod)[0]
    ganged = Ganged(f"{namespace}/{named.name}", named.size) if named else None
    job = ganged.name if ganged else f"#{index}" if count > 1 else ""
    identity = cluster_objects.identity(pod["metadata"], job)
    return [Waiting(namespace, name, Wanted(found.asked, host, ganged, rules, identity))] * count


def _numbered(
    pods: Iterable[Waiting | UnplaceablePod],
) -> Iterator[tuple[Waiting | UnplaceablePod, int]]:
    counts: dict[tuple[str, str], int] = {}
    for pod in pods:
        key = pod.namespace, pod.name
        counts[key] = counts.get(key, 0) + 1
        yield pod, counts[key]


def _packed(views: Mapping[NodeName, NodeView], learned: DefaultPolicies) -> Packed:
    usable = [view.state for view in views.values() if view.unusable is None]
    rooms = (room.room_of(state, learned.models) for state in usable)
    return packed.of_rooms(rooms, learned.demand, closed=sum(map(room.closed_cards, usable)))
