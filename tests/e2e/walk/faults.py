"""The faults of the walk: those of the longer run with faults, and what two replicas, a clock and a database add."""

import dataclasses
import random
import signal
import time
from collections.abc import Callable
from typing import Final, NamedTuple

from simgpu import state_directory
from tests.e2e.chaos import faults as chaos_faults
from tests.e2e.monitor import accounts
from tests.e2e.walk.views import cards_of
from tests.e2e.walk.walk_cluster import WalkCluster

_RESTART_S: Final = 1.0


class Breaks(NamedTuple):
    """A fault; what it breaks is whole again when `inject` returns.

    `may_fail_pods` is as in the longer run with faults: pods that were bound just before may never run.
    """

    name: str
    inject: Callable[[WalkCluster, random.Random], None]
    may_fail_pods: bool = False


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
    *(Breaks(fault.name, fault.inject, fault.may_fail_pods) for fault in chaos_faults.FAULTS),
    Breaks("leader killed", leader_killed),
    Breaks("leader stopped", leader_stopped),
    Breaks("clock jumps", clock_jumps),
    Breaks("database down", database_down),
    Breaks("card moved", card_moved),
)
