"""How long it takes until everything is normal: all cards are healthy, and a pod on each node has been replaced.

A resident pod on each node holds 60 % of a card. After a fault it is deleted, and another must run on the same card:
so all parts have to see a pod's end, too, that was there before the fault.
"""

import itertools
import math
import time
from typing import Final

from cluster import wait
from tests.e2e import churn
from tests.e2e.chaos.chaos_cluster import ChaosCluster
from tests.e2e.chaos.traffic import PODS, attempt, gpunodes, pods
from tests.e2e.pod_namespace import is_running
from vgpu.domain import names

GIVE_UP_S: Final = wait.allowed(150.0)
RESIDENT_CORES: Final = 60
_NEXT_ATTEMPT_S: Final = 5.0  # a pod that was created too early may wait for ever, as the guide says


class Recovery:
    """The resident pods of one cluster; `until_normal` replaces them."""

    def __init__(self, cluster: ChaosCluster) -> None:
        self._cluster = cluster
        self._numbers = itertools.count()
        self._here: dict[str, set[str]] = {node.name: set() for node in cluster.nodes}  # pods that may exist, by node

    def until_normal(self) -> float:
        """Return the seconds from now until each node has its new pod, and all cards; infinity after `GIVE_UP_S`."""
        started = time.monotonic()
        created: dict[str, set[str]] = {node: set() for node in self._here}
        waiting, latest = set(self._here), -math.inf
        while time.monotonic() < started + GIVE_UP_S:
            if time.monotonic() > latest + _NEXT_ATTEMPT_S:
                latest = time.monotonic()
                for node in waiting:
                    created[node].add(self._replace(node))
            running = {pod["metadata"]["name"] for pod in pods(self._cluster) or [] if is_running(pod)}
            waiting = {node for node in waiting if not created[node] & running}
            if not waiting and has_all_cards(self._cluster):
                return time.monotonic() - started
            time.sleep(0.1)
        return math.inf

    def _replace(self, node: str) -> str:
        """Delete the pods of a node, and create another; returns its name."""
        here = self._here[node]
        here -= {name for name in here if attempt(self._cluster, "DELETE", f"{PODS}/{name}")}
        name = f"resident-{next(self._numbers)}"
        manifest = churn.small(name, gpu_mem=256, gpu_cores=RESIDENT_CORES)
        card = next(here.cards[0] for here in self._cluster.nodes if here.name == node)
        manifest["metadata"]["annotations"] = {names.USE_GPU_UUID: card.uuid}
        attempt(self._cluster, "POST", PODS, manifest)
        here.add(name)
        return name


def has_all_cards(cluster: ChaosCluster) -> bool:
    """Whether every card is reported as healthy."""
    cards = [card for gpunode in gpunodes(cluster) or [] for card in gpunode["status"]["cards"]]
    return [card["healthy"] for card in cards].count(True) == sum(len(node.cards) for node in cluster.nodes)
