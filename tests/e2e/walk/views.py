"""What each place says of every card, in one form: `VIEWS` is the table, `differences` compares its rows.

A view leaves out (None) what it does not know: a kubelet knows no MiB, the history of decisions no slices.
"""

import datetime as dt
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

import httpx
from prometheus_client.parser import text_string_to_metric_families

from cluster import accounts as cluster_accounts
from cluster import api, parts
from tests.e2e.monitor import accounts, snapshot
from tests.e2e.monitor.findings import Finding
from tests.e2e.monitor.part_processes import root
from tests.e2e.monitor.snapshot import Snapshot
from tests.e2e.walk.walk_cluster import WalkCluster
from vgpu.domain import names
from vgpu.domain.cards.share import CardState
from vgpu.domain.formats import limits
from vgpu.domain.quantity import FULL_CORES
from vgpu.node.cards import device_ids

_BYTES: Final = 1 << 20
_PAGE: Final = 1000

Json = dict[str, Any]
Held = tuple[str, int, int, bool]  # pod, MiB, percent, whole


@dataclass(frozen=True, slots=True)
class CardView:
    """What one place says of a card; None for what it does not know."""

    holders: frozenset[str] | None = frozenset()  # pods, as NAMESPACE/NAME
    memory_mib: int | None = 0
    cores: int | None = 0
    slices: int | None = 0
    free_mib: int | None = None  # by slices and by MiB, whichever is less


View = Mapping[str, CardView]


class Look(NamedTuple):
    """One look at the cluster: the witnesses of the monitor, and a client of the admin REST."""

    cluster: WalkCluster
    seen: Snapshot
    rest: httpx.Client


def of_pods(look: Look) -> View:
    """Of the pods in the API server: the view that all others are compared with."""
    found = {
        uuid: CardView(
            memory_mib=card.memory_mib if used.wholes else used.memory_mib,
            cores=FULL_CORES if used.wholes else used.cores,
            slices=card.slices(slice_mib) if used.wholes else used.slices,
            free_mib=CardState(card, slice_mib, used).free_mib,
        )
        for uuid, (card, slice_mib, used) in accounts.taken(look.seen).items()
    }
    for pod in filter(accounts.is_live, look.seen.pods):
        for uuid in chosen.gpus() if (chosen := accounts.trusted(pod)) else ():
            if uuid in found:
                found[uuid] = replace(found[uuid], holders=(found[uuid].holders or frozenset()) | {_name(pod)})
    return found


def of_gpunodes(look: Look) -> View:
    """Of the reports of the device plugins."""
    found = {}
    for node in accounts.nodes_of(look.seen.gpunodes):
        for card in node.cards:
            slices = card.slices(node.slice_mib) if card.held_whole else card.held_slices
            found[str(card.uuid)] = CardView(None, None, None, slices)
    return found


def of_kubelets(look: Look) -> View:
    """Of the kubelets' pod resources."""
    ids: dict[str, set[str]] = defaultdict(set)
    holders: dict[str, set[str]] = defaultdict(set)
    wholes = set()
    for pod, resource, device in _listed_devices(look):
        uuid = device_ids.gpu_of(device)
        ids[uuid].add(device)
        holders[uuid].add(pod)
        if resource == names.CARD:
            wholes.add(uuid)
    return {
        uuid: CardView(frozenset(holders[uuid]), None, None, None if uuid in wholes else len(ids[uuid]))
        for uuid in _cards(look)
    }


def _listed_devices(look: Look) -> Iterator[tuple[str, str, str]]:
    """Yield pod, resource and device ID of each device that the kubelets list as held."""
    for here in look.seen.nodes.values():
        for (namespace, name), containers in here.listing.items():
            for by_resource in containers.values():
                for resource, given in by_resource.items():
                    yield from ((f"{namespace}/{name}", resource, device) for device in given)


def of_files(look: Look) -> View:
    """Of the records and limits files on the nodes, of pods that live."""
    live = {pod["metadata"]["uid"]: _name(pod) for pod in look.seen.pods if accounts.is_live(pod)}
    held = []
    for node in look.cluster.nodes:
        folder = root(node) / "var/lib/vgpu/allocations"
        for record in look.seen.nodes[node.name].records:
            if record.holder and record.is_proven and record.holder.uid in live:
                written = limits.decode((folder / record.id / "limits").read_bytes())
                pod, whole = live[record.holder.uid], record.resource == names.CARD
                for card in written.cards:
                    mib = (card.memory_bytes or 0) // _BYTES
                    given = look.cluster.given_mib(pod, record.holder.container, mib)
                    held.append((card.gpu, (pod, given, card.cores, whole)))
    return _added(look, held, knows_cores=False)  # a share without guaranteed time has a percentage there too


def of_rest_cards(look: Look) -> View:
    """Of the REST's list of cards. A card that was moved is in it twice: its old node misses it (NotFound)."""
    rows: dict[str, list[Json]] = {}
    for row in _pages(look.rest, "/gpus"):
        rows.setdefault(row["uuid"], []).append(row)
    return {
        uuid: CardView(
            frozenset(f"{pod['namespace']}/{pod['pod']}" for row in of_card for pod in row["pods"]),
            None,
            sum(row["allocatedCores"] for row in of_card),
            None,
            of_card[0]["memoryMiB"] - sum(row["allocatedMiB"] for row in of_card),
        )
        for uuid, of_card in rows.items()
    }


def of_rest_pods(look: Look) -> View:
    """Of the REST's list of pods."""
    held = [
        (grant["uuid"], (f"{row['namespace']}/{row['name']}", grant["memoryMiB"], grant["cores"], grant["whole"]))
        for row in _pages(look.rest, "/pods")
        if row["status"] != "Ended"
        for grant in row["gpus"]
    ]
    return _added(look, held)


def of_metrics(look: Look) -> View:
    """Of the device plugins' metrics."""
    slices: dict[str, int] = {}
    used: set[tuple[str, str, str]] = set()
    limit: dict[tuple[str, str, str], int] = {}
    for label, name, value in _samples(look.cluster):
        if name == "vgpu_card_held_slices":
            slices[label["gpu_uuid"]] = slices.get(label["gpu_uuid"], 0) + int(value)  # moved: of both nodes
        elif name.startswith("vgpu_container_memory_"):
            key = label["gpu_uuid"], f"{label['namespace']}/{label['pod']}", label["container"]
            used.add(key)
            if name == "vgpu_container_memory_limit_bytes":
                limit[key] = look.cluster.given_mib(*key[1:], int(value) // _BYTES)
    # A container that holds a card whole has no limit.
    held = [(key[0], (key[1], limit.get(key, 0), 0, key not in limit)) for key in sorted(used)]
    added = _added(look, held, knows_cores=False)
    return {uuid: replace(view, slices=slices.get(uuid, 0)) for uuid, view in added.items()}


def _samples(cluster: WalkCluster) -> Iterator[tuple[Mapping[str, str], str, float]]:
    """Yield labels, name and value of each sample of the nodes' metrics."""
    with httpx.Client(transport=api.Transport(cluster.within), timeout=10) as http:
        for node in cluster.nodes:
            answer = http.get(f"http://{node.name}:{parts.METRICS_PORT}/metrics").raise_for_status()
            for family in text_string_to_metric_families(answer.text):
                for sample in family.samples:
                    yield sample.labels, sample.name, sample.value


def of_history(look: Look) -> View:
    """Of the history: pods that were bound and have not ended."""
    tomorrow = (dt.datetime.now(dt.UTC) + dt.timedelta(days=2)).isoformat()
    query = {"kind": ["decision", "end"], "until": tomorrow, "since": "30d"}
    bound: dict[str, Json] = {}
    ended = set()
    for row in _pages(look.rest, "/history", query):
        event = row["event"]
        uid = event["pod"]["uid"]
        if row["kind"] == "decision":
            bound[uid] = event
        elif not event["container"]:
            ended.add(uid)
    held = [
        (card["gpu"], (f"{event['pod']['namespace']}/{event['pod']['name']}",
                       card["memory_mib"], card["cores"], card.get("whole", False)))
        for uid, event in bound.items() if uid not in ended
        for card in event["cards"]
    ]  # fmt: skip
    return _added(look, held)


VIEWS: Final[Mapping[str, Callable[[Look], View]]] = {
    "GPUNodes": of_gpunodes,
    "kubelets": of_kubelets,
    "files": of_files,
    "REST cards": of_rest_cards,
    "REST pods": of_rest_pods,
    "metrics": of_metrics,
    "history": of_history,
}
FIELDS: Final = ("holders", "memory_mib", "cores", "slices", "free_mib")


def differences(cluster: WalkCluster) -> Iterator[Finding]:
    """Yield a finding for each figure of a view that is not that of the pods."""
    with rest_client(cluster) as rest:
        look = Look(cluster, snapshot.take(cluster), rest)
        truth = of_pods(look)
        for name, view in VIEWS.items():
            yield from _compared(name, view(look), truth)


def _compared(name: str, view: View, truth: View) -> Iterator[Finding]:
    for uuid in sorted(truth.keys() | view.keys()):
        expected, said = truth.get(uuid, CardView()), view.get(uuid, CardView())
        for field in FIELDS:
            value, right = getattr(said, field), getattr(expected, field)
            if value is not None and value != right:
                yield Finding(f"{name} and the pods differ in {field}", f"{uuid}: {value}, by the pods {right}", uuid)


def cards_of(pod: Json) -> frozenset[str]:
    """Return the UUIDs of the cards that a pod was assigned."""
    chosen = accounts.trusted(pod)
    return frozenset(chosen.gpus()) if chosen else frozenset()


def closed_cards(seen: Snapshot) -> frozenset[str]:
    """Return the UUIDs of the cards that take no new pods: cordoned, or not healthy."""
    return frozenset(
        card["uuid"]
        for gpunode in seen.gpunodes
        for card in (*(gpunode.get("spec", {}).get("cards") or ()), *gpunode["status"]["cards"])
        if card.get("cordoned") or not card.get("healthy", True)
    )


def rest_client(cluster: WalkCluster) -> httpx.Client:
    """Return a client of the admin REST with an administrator's token."""
    token = cluster_accounts.token(cluster.work, cluster_accounts.ADMIN.name)
    return httpx.Client(
        base_url=f"https://{parts.ADMIN}/api/v1",
        transport=api.Transport(cluster.within, verify=False),
        headers={"Authorization": f"Bearer {token}"},
        timeout=20,
    )


def _pages(rest: httpx.Client, path: str, query: Mapping[str, Any] | None = None) -> Iterator[Json]:
    cursor = ""
    while True:
        answer = rest.get(path, params={**(query or {}), "limit": _PAGE, **({"cursor": cursor} if cursor else {})})
        body = answer.raise_for_status().json()
        yield from body["items"]
        cursor = body["nextCursor"]
        if not cursor:
            return


def _added(look: Look, held: Sequence[tuple[str, Held]], *, knows_cores: bool = True) -> View:
    """Add up what containers hold; one that holds a card whole has all its memory and time."""
    nothing = CardView(cores=0 if knows_cores else None, slices=None)
    memory = _cards(look)
    found = dict.fromkeys(memory, nothing)
    for uuid, (pod, mib, cores, whole) in held:
        now = found.get(uuid, nothing)
        found[uuid] = CardView(
            (now.holders or frozenset()) | {pod},
            (now.memory_mib or 0) + (memory.get(uuid, mib) if whole else mib),
            (now.cores or 0) + (FULL_CORES if whole else cores) if knows_cores else None,
            None,
        )
    return found


def _cards(look: Look) -> dict[str, int]:
    """Return the MiB of each card."""
    nodes = accounts.nodes_of(look.seen.gpunodes)
    return {str(card.uuid): card.memory_mib for node in nodes for card in node.cards}


def _name(pod: Json) -> str:
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
