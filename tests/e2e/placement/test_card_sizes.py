"""Percentages on cards of twelve real sizes, through the real kube-scheduler: each share fits as often as it says.

The nodes are objects without a kubelet: a Node, a GPUNode and two Leases, which a thread renews. A pod on them is bound
and does not run.
"""

import contextlib
import datetime as dt
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Final, NamedTuple

import pytest

from cluster import api, progress
from cluster.cluster import GpuCluster
from tests.e2e.placement.test_quotas import MEMORY, QUOTA
from tests.e2e.pod_namespace import Document, PodNamespace, container, pod
from vgpu.domain import names, slices

pytestmark = pytest.mark.e2e

SLICE_MIB: Final = 256
CARDS: Final = {  # MiB that NVML reports, without what the driver reserves
    "H100-80GB": 81_008, "H200": 143_771, "A100-80GB": 81_289, "A100-40GB": 40_960, "B200": 183_359, "L40S": 46_068,
    "A10": 23_028, "RTX-4090": 24_564, "RTX-5090": 32_607, "RTX-PRO-6000": 97_887, "T4": 15_360, "RTX-2080-Ti": 11_264,
}  # fmt: skip
PERCENTS: Final = {2: 50, 3: 33, 4: 25, 5: 20, 7: 14, 10: 10, 20: 5}  # how many fit, and of which percentage
# Each percentage has a card of its own on each node; three more cards are for what stands beside percentages.
BESIDE_MIB, BESIDE_WHOLE, BESIDE_QUOTA = range(len(PERCENTS), len(PERCENTS) + 3)
COUNT: Final = BESIDE_QUOTA + 1
SETTLED_S: Final = 60
QUARTER: Final = 25


class Wanted(NamedTuple):
    """Equal pods on one card; `fits` says how many of them fit."""

    model: str
    card: int
    name: str
    limits: dict[str, str]
    copies: int
    fits: int


def uuid(model: str, card: int) -> str:
    return f"GPU-{model}-{card}".lower()


def node_of(model: str) -> str:
    return f"sized-{model}".lower()


def part(card_mib: int, percent: int) -> int:
    """MiB of a percentage, by hand: whole slices of the card's, and not more than the percentage."""
    return min(card_mib * percent // 100, -(-card_mib // SLICE_MIB) * percent // 100 * SLICE_MIB)


def room(card_mib: int, percent: int) -> int:
    """How many such shares a card has room for: more than 100 / percent where each is rounded down to whole slices."""
    share = part(card_mib, percent)
    return min(-(-card_mib // SLICE_MIB) // -(-share // SLICE_MIB), card_mib // share)


def wanted() -> list[Wanted]:
    """All pods: for each size each percentage once too often, a mixture with MiB, and whole cards."""
    found = []
    for model, mib in CARDS.items():
        for card, (count, percent) in enumerate(PERCENTS.items()):
            limits = {names.GPU_MEM_PERCENTAGE: str(percent)}
            fits = min(room(mib, percent), count + 1)
            assert fits >= count
            found.append(Wanted(model, card, f"p{percent}", limits, count + 1, fits))
        half = {names.GPU_MEM_PERCENTAGE: "50"}
        rest = -(-mib // SLICE_MIB) - -(-part(mib, 50) // SLICE_MIB)  # in slices
        amount = {names.GPU_MEM: str(min(rest * SLICE_MIB, mib - part(mib, 50)))}
        found += [
            Wanted(model, BESIDE_MIB, "half", half, 1, 1),
            Wanted(model, BESIDE_MIB, "rest", amount, 1, 1),
            Wanted(model, BESIDE_WHOLE, "whole", {names.GPU: "1"}, 1, 1),
        ]
    return found


class SizedNodes:
    """The nodes' objects, and the thread that renews their Leases."""

    def __init__(self, cluster: GpuCluster) -> None:
        self._api = cluster.api
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._renew)

    def create(self) -> None:
        self._thread.start()
        for model, mib in CARDS.items():
            self._create(node_of(model), model, mib)

    def _create(self, name: str, model: str, mib: int) -> None:
        offered = {names.SLICE: str(COUNT * slices.holding(mib, SLICE_MIB)), names.CARD: str(COUNT)}
        amounts = {"cpu": "1000", "memory": "4Ti", "pods": "250", **offered}
        labels = {"kubernetes.io/hostname": name, f"{names.DOMAIN}/enabled": "true"}
        self._api.create("/api/v1/nodes", {"metadata": {"name": name, "labels": labels}})
        ready = {"type": "Ready", "status": "True", "reason": "Sized", "lastHeartbeatTime": _now()[:19] + "Z"}
        status = {"capacity": amounts, "allocatable": amounts, "conditions": [ready]}
        self._api.patch(f"/api/v1/nodes/{name}/status", {"status": status})
        self._api.patch(f"/api/v1/nodes/{name}", {"spec": {"taints": None}})
        cards = [
            {"uuid": uuid(model, card), "index": card, "model": model, "memoryMiB": mib, "healthy": True}
            for card in range(COUNT)
        ]
        self._api.create(
            names.GPUNODES_PATH, {"apiVersion": names.API_VERSION, "kind": "GPUNode", "metadata": {"name": name}}
        )
        seen = {"sliceMiB": SLICE_MIB, "pluginVersion": "0", "cards": cards}
        self._api.patch(f"{names.GPUNODES_PATH}/{name}/status", {"status": seen})

    def _renew(self) -> None:
        """Renew what the kubelet and the device plugin of each node would."""
        while not self._ended.wait(1.0):
            for model in CARDS:
                node = node_of(model)
                for namespace, name in ((names.NAMESPACE, names.node_lease(node)), ("kube-node-lease", node)):  # type: ignore[arg-type]
                    self._put_lease(namespace, name, node)

    def _put_lease(self, namespace: str, name: str, holder: str) -> None:
        path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
        spec = {"holderIdentity": holder, "leaseDurationSeconds": 40, "renewTime": _now()}
        try:
            self._api.patch(f"{path}/{name}", {"spec": spec})
        except api.RequestRefused:
            with contextlib.suppress(api.RequestRefused):
                self._api.create(path, {"metadata": {"name": name}, "spec": spec})

    def remove(self) -> None:
        self._ended.set()
        self._thread.join()
        for model in CARDS:
            name = node_of(model)
            leases = "/apis/coordination.k8s.io/v1/namespaces"
            for path in (
                f"{leases}/{names.NAMESPACE}/leases/{names.node_lease(name)}",  # type: ignore[arg-type]
                f"{leases}/kube-node-lease/leases/{name}",
                f"{names.GPUNODES_PATH}/{name}",
                f"/api/v1/nodes/{name}",
            ):
                with contextlib.suppress(api.RequestRefused):
                    self._api.delete(path)


def _now() -> str:
    return dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


@pytest.fixture
def sized(cluster: GpuCluster, namespace: PodNamespace) -> Iterator[PodNamespace]:
    """A namespace on a cluster that has a node of each size."""
    made = SizedNodes(cluster)
    try:
        made.create()
        yield namespace
    finally:
        cluster.api.delete(namespace.pods_path, gracePeriodSeconds="0")
        made.remove()


def manifest(model: str, card: int, name: str, limits: dict[str, str]) -> Document:
    made = pod(f"{name}-{model}".lower(), container(limits=limits), annotations={names.USE_GPU_UUID: uuid(model, card)})
    made["spec"]["nodeSelector"] = {"kubernetes.io/hostname": node_of(model)}
    return made


def quarter(model: str, number: int) -> Document:
    return manifest(model, BESIDE_QUOTA, f"quota-{number}", {names.GPU_MEM_PERCENTAGE: str(QUARTER)})


def create_all(namespace: PodNamespace, entries: list[Wanted]) -> None:
    manifests = [
        manifest(entry.model, entry.card, f"{entry.name}-{number}", entry.limits)
        for entry in entries
        for number in range(entry.copies)
    ]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(namespace.create, manifests))


def bound(namespace: PodNamespace) -> Counter[str]:
    """How many pods each card has."""
    return Counter(
        item["metadata"]["annotations"][names.USE_GPU_UUID] for item in namespace.all() if item["spec"].get("nodeName")
    )


def expected(entries: list[Wanted]) -> Counter[str]:
    found: Counter[str] = Counter()
    for entry in entries:
        found[uuid(entry.model, entry.card)] += entry.fits
    return found


def table(found: Counter[str]) -> str:
    head = (
        f"{'card':14} {'MiB':>8} " + " ".join(f"{'1/' + str(count):>5}" for count in PERCENTS) + "  half + rest  whole"
    )
    lines = [
        f"{model:14} {mib:8} "
        + " ".join(f"{found[uuid(model, card)]:5}" for card in range(len(PERCENTS)))
        + f"  {found[uuid(model, BESIDE_MIB)]:11}  {found[uuid(model, BESIDE_WHOLE)]:5}"
        for model, mib in CARDS.items()
    ]
    return "\n".join([head, *lines])


def test_each_percentage_fits_as_often_as_it_says_on_twelve_sizes_of_cards(sized: PodNamespace) -> None:
    entries, hard = wanted(), sum(4 * part(mib, QUARTER) for mib in CARDS.values())
    create_all(sized, entries)
    right = expected(entries)
    sized.until(lambda: bound(sized) == right or None, f"each card has its pods:\n{table(right)}", SETTLED_S)
    sized.cluster.api.create(
        f"{sized.path}/resourcequotas",
        {"metadata": {"name": QUOTA}, "spec": {"hard": {MEMORY: str(used_mib(sized) + hard)}}},
    )
    sized.until(
        lambda: sized.cluster.api.get(f"{sized.path}/resourcequotas/{QUOTA}").get("status", {}).get("used"), "a quota"
    )
    for model in CARDS:
        for number in range(4):
            sized.create(quarter(model, number))
    refused = sized.refused(quarter("T4", 4))
    assert f"exceeded quota: {QUOTA}" in refused
    right += Counter({uuid(model, BESIDE_QUOTA): 4 for model in CARDS})
    sized.until(lambda: bound(sized) == right or None, "the quarters within the quota", SETTLED_S)
    progress.say(f"percentages on real cards, pods that fit:\n{table(bound(sized))}")


def used_mib(namespace: PodNamespace) -> int:
    """What all pods of the namespace ask for, as a quota counts it."""
    return sum(
        int(item["spec"]["containers"][0]["resources"]["limits"].get(names.GPU_MEM, 0)) for item in namespace.all()
    )
