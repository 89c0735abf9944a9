"""What the walk does: a table of actions of users and administrators, and a table of faults.

Each action is one step of a seeded walk; a request that the API server refuses, or cannot answer just now, is no error.
"""

import contextlib
import dataclasses
import random
import signal
import time
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import httpx

from cluster import api
from simgpu import state_directory
from tests.e2e import churn
from tests.e2e.chaos import faults as chaos_faults
from tests.e2e.monitor import accounts, json_depth
from tests.e2e.pod_namespace import container, pod
from tests.e2e.walk.views import cards_of, rest_client
from tests.e2e.walk.walk_cluster import WalkCluster
from vgpu.domain import names

NAMESPACE: Final = "walk"
LIMITED: Final = "walk-limited"  # has a quota
QUOTA_MIB: Final = 40 * 1024
HIGH: Final = "walk-high"
_RESTART_S: Final = 1.0
_CARD_MIB: Final = 81920
_NODES: Final = "/api/v1/nodes"

Json = dict[str, Any]


class Walker:
    """A cluster, the walk's randomness, and the names of its pods."""

    def __init__(self, cluster: WalkCluster, chance: random.Random) -> None:
        self.cluster = cluster
        self.chance = chance
        self._count = 0

    def prepare(self) -> None:
        """Create the namespaces, the quota and the class of high priority."""
        for namespace in (NAMESPACE, LIMITED):
            self.cluster.create_namespace(namespace)
        hard = {f"requests.{names.GPU_MEM}": str(QUOTA_MIB)}
        self.attempt("POST", f"/api/v1/namespaces/{LIMITED}/resourcequotas",
                     {"metadata": {"name": "walk"}, "spec": {"hard": hard}})  # fmt: skip
        self.attempt("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": HIGH}, "value": 1000})

    def name(self, word: str) -> str:
        """Return a new name."""
        self._count += 1
        return f"{word}-{self._count}"

    def attempt(self, method: str, path: str, body: Json | None = None, **query: str) -> bool:
        """Send a request to the API server; whether it was accepted."""
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        try:
            self.cluster.api.request(method, path, body, kind=kind, query=query)
        except (api.RequestRefused, httpx.HTTPError, OSError):
            return False
        return True

    def pods(self) -> list[Json]:
        """Return the walk's pods, sorted by name so that a seed chooses alike; none where the API server is silent."""
        try:
            found = json_depth.loads(self.cluster.api.text("/api/v1/pods").encode())["items"]
        except (api.RequestRefused, httpx.HTTPError, OSError):
            return []
        own = [item for item in found if item["metadata"]["namespace"] in (NAMESPACE, LIMITED)]
        return sorted(own, key=lambda item: (item["metadata"]["namespace"], item["metadata"]["name"]))

    def create(self, manifest: Json, namespace: str = NAMESPACE) -> bool:
        return self.attempt("POST", f"/api/v1/namespaces/{namespace}/pods", manifest)

    def delete(self, item: Json, **query: str) -> bool:
        return self.attempt("DELETE", path_of(item), None, **query)


def path_of(item: Json) -> str:
    """Return the path of a pod in the API."""
    return f"/api/v1/namespaces/{item['metadata']['namespace']}/pods/{item['metadata']['name']}"


def share(walker: Walker) -> None:
    """A share of a card, often without guaranteed time."""
    chance = walker.chance
    cores = {"gpu_cores": chance.randint(1, 60)} if chance.random() < 0.6 else {}
    walker.create(churn.small(walker.name("share"), gpu_mem=chance.choice((1, 256, 700, 8192, 20480, 40960)), **cores))


def percent(walker: Walker) -> None:
    part = str(walker.chance.choice((5, 10, 14, 20, 25, 33, 50)))
    limits = {names.GPU_MEM_PERCENTAGE: part}
    walker.create(pod(walker.name("percent"), container(limits=limits) | churn.PAUSE))


def several(walker: Walker) -> None:
    """Two or three cards of one node."""
    cards = walker.chance.choice((2, 3))
    walker.create(churn.small(walker.name("several"), gpu_mem=cards * 4096, gpu_cores=cards * 10, gpu=cards))


def whole(walker: Walker) -> None:
    walker.create(churn.small(walker.name("whole"), gpu=walker.chance.choice((1, 1, 2))))


def two_containers(walker: Walker) -> None:
    both = [container(name, gpu_mem=2048, gpu_cores=5) | churn.PAUSE for name in ("one", "two")]
    walker.create(pod(walker.name("two"), *both))


def short(walker: Walker) -> None:
    """A pod that ends by itself."""
    manifest = pod(walker.name("short"), container(command=("sleep", "1"), gpu_mem=1024))
    manifest["spec"]["restartPolicy"] = "Never"
    walker.create(manifest)


def limited(walker: Walker) -> None:
    """A pod in the namespace with a quota, which may refuse it."""
    mib = walker.chance.choice((1024, 8192, 20480))
    walker.create(churn.small(walker.name("limited"), gpu_mem=mib), LIMITED)


def high(walker: Walker) -> None:
    """A pod of high priority, which may preempt."""
    manifest = churn.small(walker.name("high"), gpu_mem=walker.chance.choice((8192, 40960)), gpu_cores=20)
    manifest["spec"]["priorityClassName"] = HIGH
    walker.create(manifest)


def gang(walker: Walker) -> None:
    size, name = walker.chance.choice((2, 3, 6)), walker.name("gang")
    for member in range(size):
        manifest = churn.small(f"{name}-{member}", gpu_mem=walker.chance.choice((4096, 30720)))
        manifest["metadata"]["annotations"] = {names.GANG: name, names.GANG_SIZE: str(size)}
        walker.create(manifest)


def part_of_a_gang(walker: Walker) -> None:
    """A gang with a member that never comes."""
    name = walker.name("incomplete")
    manifest = churn.small(f"{name}-0", gpu_mem=4096)
    manifest["metadata"]["annotations"] = {names.GANG: name, names.GANG_SIZE: "2"}
    walker.create(manifest)


def delete(walker: Walker) -> None:
    for item in _some(walker, 3):
        walker.delete(item)


def force_delete(walker: Walker) -> None:
    for item in _some(walker, 2):
        walker.delete(item, gracePeriodSeconds="0")


def resize(walker: Walker) -> None:
    """Change the CPU of a running pod in place."""
    for item in _some(walker, 1):
        main = item["spec"]["containers"][0]["name"]
        resources = {"requests": {"cpu": f"{walker.chance.randint(1, 20)}m"}}
        patch = {"spec": {"containers": [{"name": main, "resources": resources}]}}
        with contextlib.suppress(api.RequestRefused, httpx.HTTPError, OSError):
            walker.cluster.api.request(
                "PATCH", f"{path_of(item)}/resize", patch, kind="application/strategic-merge-patch+json"
            )


def _some(walker: Walker, most: int) -> list[Json]:
    here = walker.pods()
    return walker.chance.sample(here, min(len(here), walker.chance.randint(1, most)))


def cordon_card(walker: Walker) -> None:
    _card_command(walker, "cordon")


def uncordon_card(walker: Walker) -> None:
    _card_command(walker, "uncordon")


def _card_command(walker: Walker, command: str) -> None:
    card = walker.chance.choice(walker.cluster.nodes[0].cards)
    with contextlib.suppress(httpx.HTTPError, OSError), rest_client(walker.cluster) as rest:
        rest.post(f"/gpus/{card.uuid}/{command}")


def cordon_node(walker: Walker) -> None:
    walker.attempt("PATCH", f"{_NODES}/{walker.cluster.nodes[1].name}", {"spec": {"unschedulable": True}})


def uncordon_node(walker: Walker) -> None:
    walker.attempt("PATCH", f"{_NODES}/{walker.cluster.nodes[1].name}", {"spec": {"unschedulable": None}})


ACTIONS: Final[tuple[tuple[int, Callable[[Walker], None]], ...]] = (  # how often, and what
    (8, share), (4, percent), (3, several), (2, whole), (3, two_containers), (2, short), (3, limited), (3, high),
    (3, gang), (1, part_of_a_gang), (9, delete), (3, force_delete), (2, resize), (1, cordon_card), (3, uncordon_card),
    (1, cordon_node), (3, uncordon_node),
)  # fmt: skip


class Breaks(NamedTuple):
    """A fault; what it breaks is whole again when `inject` returns."""

    name: str
    inject: Callable[[WalkCluster, random.Random], None]


def _leader(cluster: WalkCluster) -> int:
    """Index of the replica that binds."""
    lease = cluster.api.get("/apis/coordination.k8s.io/v1/namespaces/vgpu-system/leases/vgpu-extender")
    holder = str(lease["spec"].get("holderIdentity") or "")
    return 1 if holder.startswith("walk-b") else 0


def leader_killed(cluster: WalkCluster, _: random.Random) -> None:
    index = _leader(cluster)
    for part in (cluster.extenders[index], cluster.schedulers[index]):
        part.kill()
    time.sleep(_RESTART_S)
    for part in (cluster.extenders[index], cluster.schedulers[index]):
        part.start(wait_ready=False)


def leader_stopped(cluster: WalkCluster, _: random.Random) -> None:
    """Stop the leader for longer than its Lease lasts: two believe that they lead when it goes on."""
    index = _leader(cluster)
    both = (cluster.extenders[index].process, cluster.schedulers[index].process)
    for process in both:
        process.signal(signal.SIGSTOP)
    time.sleep(25)
    for process in both:
        process.signal(signal.SIGCONT)


def clock_jumps(cluster: WalkCluster, chance: random.Random) -> None:
    """Let the clock of one extender be wrong by hours or days for some seconds."""
    index = chance.randrange(len(cluster.extenders))
    cluster.set_clock(index, chance.choice((3 * 3600, -3 * 3600, 90 * 86400)))
    time.sleep(chance.choice((3, 8)))
    cluster.set_clock(index, 0)


def database_down(cluster: WalkCluster, chance: random.Random) -> None:
    if cluster.database is None:
        return
    cluster.database.stop(chance.choice((signal.SIGINT, signal.SIGQUIT)))
    time.sleep(chance.choice((3, 10)))
    cluster.database.start()


def card_moved(cluster: WalkCluster, chance: random.Random) -> None:
    """Move a card without pods to the other node, or back; the driver of each node is told at once."""
    source, target = chance.sample(cluster.nodes, 2)
    pods = cluster.api.get("/api/v1/pods")["items"]
    held = {uuid for item in pods if accounts.is_live(item) for uuid in cards_of(item)}
    free = [card for card in source.cards if card.uuid not in held]
    if not free or len(source.cards) < 3:
        return
    moved = free[-1]
    left = [card for card in source.cards if card is not moved]
    source.cards = tuple(dataclasses.replace(card, index=number) for number, card in enumerate(left))
    target.cards = (*target.cards, dataclasses.replace(moved, index=len(target.cards)))
    for node in (source, target):
        state_directory.write_cards(node.driver_state, node.cards)


FAULTS: Final = (
    *(Breaks(fault.name, fault.inject) for fault in chaos_faults.FAULTS),
    Breaks("leader killed", leader_killed),
    Breaks("leader stopped", leader_stopped),
    Breaks("clock jumps", clock_jumps),
    Breaks("database down", database_down),
    Breaks("card moved", card_moved),
)
