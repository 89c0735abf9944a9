"""Nothing waits that fits: what filter, explain and the REST say of every waiting pod, and what a quota counts."""

from collections.abc import Iterator
from typing import Any

import httpx

from cluster import api
from tests.e2e.monitor import accounts
from tests.e2e.monitor.findings import Finding
from tests.e2e.monitor.snapshot import Snapshot
from tests.e2e.walk.views import cards_of, closed_cards, rest_client
from tests.e2e.walk.walk_cluster import URLS, WalkCluster
from vgpu.domain import names
from vgpu.domain.asks import request
from vgpu.domain.cards.reasons import Reason
from vgpu.domain.cards.share import CardState
from vgpu.domain.quantity import FULL_CORES

Json = dict[str, Any]


def findings(cluster: WalkCluster, seen: Snapshot) -> Iterator[Finding]:
    """Yield a finding for each pod that waits though it fits, and each question that is answered wrongly."""
    open_nodes = [node["metadata"]["name"] for node in cluster.api.get("/api/v1/nodes")["items"] if is_open(node)]
    with rest_client(cluster) as rest:
        listed = {
            f"{row['namespace']}/{row['name']}": row
            for row in rest.get("/pending", params={"limit": 100}).json()["items"]
        }
        every = {f"{pod['metadata']['namespace']}/{pod['metadata']['name']}": pod for pod in seen.pods if waits(pod)}
        for missing in every.keys() - listed:
            yield Finding("the REST does not list a pod that waits", missing, missing)
        for added in listed.keys() - every:
            yield Finding("the REST lists a pod as waiting that does not wait", added, added)
        for name, row in listed.items():
            if name in every and not says_of_gates(row, is_held=is_gated(every[name])):
                yield Finding("the REST does not say whether a pod has a scheduling gate", f"{name}: {row}", name)
        for name, pod in ((name, pod) for name, pod in every.items() if not is_gated(pod)):
            yield from _waits(cluster, rest, open_nodes, name, pod)
            yield from _preempts_nothing(seen, open_nodes, name, pod)


def is_open(node: Json) -> bool:
    """Whether kube-scheduler places pods on a node."""
    return not node["spec"].get("unschedulable") and not node["spec"].get("taints")


def waits(pod: Json) -> bool:
    """Whether a pod asks for a share and is not bound; also one that was created while the webhook did not answer."""
    return (
        not pod["spec"].get("nodeName")
        and "deletionTimestamp" not in pod["metadata"]
        and request.parse(pod).request is not None
    )


def is_gated(pod: Json) -> bool:
    """Whether something else than a scheduler holds a pod back, such as Kueue."""
    return bool(pod["spec"].get("schedulingGates"))


def says_of_gates(row: Json, *, is_held: bool) -> bool:
    """Whether a row of the REST's list of waiting pods says of scheduling gates what is true.

    Of a pod that the webhook has not seen it says that first.
    """
    reasons = {entry["reason"] for entry in row["reasons"]}
    return (Reason.SCHEDULING_GATED in reasons) == is_held or (is_held and Reason.NOT_ADMITTED in reasons)


def is_in_gang(pod: Json) -> bool:
    return names.GANG in (pod["metadata"].get("annotations") or {})


def _waits(cluster: WalkCluster, rest: httpx.Client, nodes: list[str], name: str, pod: Json) -> Iterator[Finding]:
    explained = rest.get(f"/pods/{name}/explain").raise_for_status().json()
    if explained["fits"]:
        yield Finding("explain says that a waiting pod fits", f"{name}: {explained.get('message')}", name)
    if not explained.get("message"):
        yield Finding("explain says nothing of a waiting pod", name, name)
    if is_in_gang(pod) or not nodes:
        return  # filter's answer to a member is that of its gang's plan, which a question may begin
    for url in URLS:
        with httpx.Client(transport=api.Transport(cluster.within), base_url=url, timeout=10) as http:
            answer = http.post("/filter", json={"Pod": pod, "NodeNames": nodes}).json()
        if answer.get("NodeNames"):
            yield Finding("a pod waits that fits", f"{name} on {answer['NodeNames']}, by {url}", name)


def _preempts_nothing(seen: Snapshot, nodes: list[str], name: str, pod: Json) -> Iterator[Finding]:
    """A pod of higher priority than all others of a card, which has no gangs, takes their place."""
    asked = request.parse(pod).request
    if asked is None or is_in_gang(pod) or not (priority := pod["spec"].get("priority") or 0):
        return
    if not accounts.asked_devices(pod):  # another scheduler has it: the webhook did not answer at its creation
        return
    (container,) = asked.containers
    if container.gpus != 1 or not container.memory_mib:
        return
    for uuid, (card, slice_mib, used) in accounts.taken(seen).items():
        on_card = [other for other in seen.pods if accounts.is_live(other) and uuid in cards_of(other)]
        stays = [other for other in on_card if (other["spec"].get("priority") or 0) >= priority or is_in_gang(other)]
        here = {other["spec"]["nodeName"] for other in on_card}
        fits = CardState(card, slice_mib).free_mib >= container.memory_mib and (container.cores or 0) <= FULL_CORES
        is_closed = uuid in closed_cards(seen)
        if on_card and not stays and fits and here <= set(nodes) and not is_closed and used.memory_mib:
            victims = [other["metadata"]["name"] for other in on_card]
            yield Finding(
                "a pod of high priority waits beside pods of low priority", f"{name}: {uuid}: {victims}", name
            )
            return


def quota(cluster: WalkCluster, seen: Snapshot, namespace: str) -> Iterator[Finding]:
    """A quota counts what the pods of its namespace ask for that have not ended."""
    pods = [pod for pod in seen.pods if pod["metadata"]["namespace"] == namespace]
    alive = [pod for pod in pods if pod["status"].get("phase") not in ("Succeeded", "Failed")]
    asked = sum(int(c["resources"]["limits"].get(names.GPU_MEM, 0)) for pod in alive for c in pod["spec"]["containers"])
    found = cluster.api.get(f"/api/v1/namespaces/{namespace}/resourcequotas/walk")["status"]
    used = int(found["used"][f"requests.{names.GPU_MEM}"])
    if used != asked or used > int(found["hard"][f"requests.{names.GPU_MEM}"]):
        yield Finding(
            "a quota counts other than its pods ask for", f"{used} MiB counted, {asked} asked: {found}", namespace
        )
