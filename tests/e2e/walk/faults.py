"""The faults of the walk: those of the longer run with faults, and what two replicas, a clock and a database add.

None chooses by what it finds: where the leader's role matters, there is a fault for each replica.
"""

import dataclasses
import random
import signal
import time
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from cluster import wait
from simgpu import state_directory
from tests.e2e.chaos import faults as chaos_faults
from tests.e2e.monitor import accounts
from tests.e2e.walk import plan
from tests.e2e.walk.views import cards_of
from tests.e2e.walk.walk_cluster import FAILURES, WalkCluster
from vgpu.domain import names

_RESTART_S: Final = 1.0
_STOPPED_S: Final = 25.0
_EMPTY_S: Final = 90.0

Inject = Callable[[WalkCluster, random.Random], None]


class Breaks(NamedTuple):
    """A fault; what it breaks is whole again when `inject` returns.

    `may_fail_pods` is as in the longer run with faults: pods that were bound just before may never run.
    """

    name: str
    inject: Inject
    may_fail_pods: bool = False


def _killed(index: int) -> Inject:
    """Kill a replica, which leads or not, and start it again."""

    def inject(cluster: WalkCluster, _: random.Random) -> None:
        for part in (cluster.extenders[index], cluster.schedulers[index]):
            part.kill()
        time.sleep(_RESTART_S)
        for part in (cluster.extenders[index], cluster.schedulers[index]):
            part.start(wait_ready=False)

    return inject


def _stopped(index: int) -> Inject:
    """Stop a replica for longer than its Lease lasts: where it led, two believe that they lead when it goes on."""

    def inject(cluster: WalkCluster, _: random.Random) -> None:
        both = (cluster.extenders[index].process, cluster.schedulers[index].process)
        for process in both:
            process.signal(signal.SIGSTOP)
        time.sleep(_STOPPED_S)
        for process in both:
            process.signal(signal.SIGCONT)

    return inject


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
    """Empty a card, as an administrator does, and move it to the other node; both drivers are told at once."""
    move = plan.card_move([len(node.cards) for node in cluster.nodes], chance)
    if move is None:
        return
    source, target = cluster.nodes[move.source], cluster.nodes[1 - move.source]
    moved = source.cards[move.card]
    _close(cluster, source.name, moved.uuid)
    wait.until(lambda: _is_empty(cluster, moved.uuid), f"no pod holds the closed card {moved.uuid}", _EMPTY_S)
    left = [card for card in source.cards if card is not moved]
    source.cards = tuple(dataclasses.replace(card, index=number) for number, card in enumerate(left))
    target.cards = (*target.cards, dataclasses.replace(moved, index=len(target.cards)))
    for node in (source, target):
        state_directory.write_cards(node.driver_state, node.cards)
    wait.until(lambda: _has_left(cluster, source.name, moved.uuid), f"{source.name} misses {moved.uuid}", _EMPTY_S)
    _close(cluster, source.name, moved.uuid, is_closed=False)


def _close(cluster: WalkCluster, node: str, uuid: str, *, is_closed: bool = True) -> None:
    """Cordon a card in the GPUNode of a node, or take out what that says of the card."""
    path = f"{names.GPUNODES_PATH}/{node}"

    def write() -> bool:
        try:
            cards = cluster.api.get(path).get("spec", {}).get("cards") or []
            others = [card for card in cards if card["uuid"] != uuid]
            closed = [{"uuid": uuid, "cordoned": True}] if is_closed else []
            cluster.api.request("PATCH", path, {"spec": {"cards": [*others, *closed]}}, plan.MERGE)
        except FAILURES:
            return False
        return True

    wait.until(write, f"GPUNode {node} is written", _EMPTY_S)


def _has_left(cluster: WalkCluster, node: str, uuid: str) -> bool:
    """Whether a node has noticed that a card is gone: until then a pod that waits gets the card as soon as it opens."""
    try:
        return not offers(cluster.api.get(f"{names.GPUNODES_PATH}/{node}"), uuid)
    except FAILURES:
        return False


def offers(gpunode: dict[str, Any], uuid: str) -> bool:
    """Whether a GPUNode reports a card as healthy."""
    cards = gpunode.get("status", {}).get("cards") or []
    return any(card["uuid"] == uuid and card.get("healthy", True) for card in cards)


def _is_empty(cluster: WalkCluster, uuid: str) -> bool:
    """Delete the pods on a card; return whether there was none."""
    try:
        held = [pod for pod in cluster.api.get("/api/v1/pods")["items"] if accounts.is_live(pod)]
        held = [pod for pod in held if uuid in cards_of(pod)]
        for pod in held:
            path = f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"
            cluster.api.request("DELETE", path)
    except FAILURES:
        return False
    return not held


FAULTS: Final = (
    *(Breaks(fault.name, fault.inject, fault.may_fail_pods) for fault in chaos_faults.FAULTS),
    *(Breaks(f"replica {letter} killed", _killed(index)) for index, letter in enumerate("ab")),
    *(Breaks(f"replica {letter} stopped", _stopped(index)) for index, letter in enumerate("ab")),
    Breaks("clock jumps", clock_jumps),
    Breaks("database down", database_down),
    Breaks("card moved", card_moved),
)
