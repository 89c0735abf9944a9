"""The faults: a table of functions that break something for a while and put it right again.

Each returns when nothing is broken any more: the time until everything is normal again counts from then. A process that
was killed is started again a second later, as a supervisor does.
"""

import contextlib
import dataclasses
import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from cluster import nodes, process
from simgpu import state_directory
from tests.e2e.chaos import rejection
from tests.e2e.chaos.chaos_cluster import EXTENDER, PLUGIN, WEBHOOK, ChaosCluster
from tests.e2e.monitor.part_processes import arbiter_pid, root

Inject = Callable[[ChaosCluster, random.Random], None]

_RESTART_S: Final = 1.0
_STOPPED_S: Final = (1.0, 4.0, 8.0)
_LASTS_S: Final = (3.0, 8.0, 15.0)


class Fault(NamedTuple):
    """A fault.

    Attributes:
        name: of the row in the table.
        inject: breaks and repairs.
        within_s: the stated time from the repair until everything is normal again.
        may_fail_pods: whether the kubelet may fail pods for good that were bound just before: the guide says so.
    """

    name: str
    inject: Inject
    within_s: float
    may_fail_pods: bool = False


def victims(cluster: ChaosCluster) -> dict[str, list[process.ClusterProcess]]:
    """Return the processes of each kind."""
    return {
        "extender": [cluster.extender.process],
        "webhook": [cluster.webhook.process],
        "plugin": [plugin.process for plugin in cluster.plugins],
        "scheduler": [cluster.scheduler.process],
        "kubelet": [node.kubelet for node in cluster.nodes],
        "api server": [cluster.control.apiserver],
    }


def _kill(kind: str) -> Inject:
    def inject(cluster: ChaosCluster, chance: random.Random) -> None:
        victim = chance.choice(victims(cluster)[kind])
        _signal_serving(kind, victim, signal.SIGKILL)
        victim.kill()
        time.sleep(_RESTART_S)
        victim.start()

    return inject


def _pause(kind: str) -> Inject:
    def inject(cluster: ChaosCluster, chance: random.Random) -> None:
        victim = chance.choice(victims(cluster)[kind])
        for number in (signal.SIGSTOP, signal.SIGCONT):
            _signal_serving(kind, victim, number)
            victim.signal(number)
            time.sleep(chance.choice(_STOPPED_S) if number is signal.SIGSTOP else 0)

    return inject


def _signal_serving(kind: str, victim: process.ClusterProcess, number: signal.Signals) -> None:
    """Signal the second process of a device plugin too: a container is killed, and hangs, as a whole."""
    if kind == "plugin":
        os.kill(nodes.serving_process(victim.pid), number)


def kill_arbiter(cluster: ChaosCluster, chance: random.Random) -> None:
    _signal_arbiter(chance.choice(cluster.nodes), signal.SIGKILL)


def pause_arbiter(cluster: ChaosCluster, chance: random.Random) -> None:
    node = chance.choice(cluster.nodes)
    _signal_arbiter(node, signal.SIGSTOP)
    time.sleep(chance.choice(_STOPPED_S))
    _signal_arbiter(node, signal.SIGCONT)


def _signal_arbiter(node: nodes.ClusterNode, number: signal.Signals) -> None:
    pid = arbiter_pid(node)
    if pid:
        os.kill(pid, number)


def stop_webhook(cluster: ChaosCluster, chance: random.Random) -> None:
    cluster.webhook.stop()
    time.sleep(chance.choice(_LASTS_S))
    cluster.webhook.start(wait_ready=False)


def _half_open(account: str) -> Inject:
    """Drop the packets of the connections that are open now, for ever: only a part's own keepalive can find out."""

    def inject(cluster: ChaosCluster, chance: random.Random) -> None:
        wanted = [name for name in cluster.routes if name.startswith(account)]
        cluster.routes[chance.choice(wanted)].silence()

    return inject


def cut_off(cluster: ChaosCluster, chance: random.Random) -> None:
    """Drop all packets of one part for a while."""
    chosen = cluster.routes[chance.choice(list(cluster.routes))]
    chosen.cut()
    time.sleep(chance.choice(_LASTS_S))
    chosen.heal()


def slow_network(cluster: ChaosCluster, chance: random.Random) -> None:
    cluster.delay(chance.choice((0.05, 0.3, 1.0)))
    time.sleep(chance.choice(_LASTS_S))
    cluster.delay(0.0)


def slow_api_server(cluster: ChaosCluster, chance: random.Random) -> None:
    """Let the API server run a quarter of the time only, in bursts."""
    victim = cluster.control.apiserver
    for _ in range(chance.choice((5, 10, 20))):
        victim.signal(signal.SIGSTOP)
        time.sleep(0.45)
        victim.signal(signal.SIGCONT)
        time.sleep(0.15)


def store_stopped(cluster: ChaosCluster, chance: random.Random) -> None:
    """Stop etcd: the API server answers 500, 503 and 504, or late."""
    cluster.control.etcd.signal(signal.SIGSTOP)
    time.sleep(chance.choice(_STOPPED_S))
    cluster.control.etcd.signal(signal.SIGCONT)


def too_many_requests(cluster: ChaosCluster, chance: random.Random) -> None:
    """Let the API server answer 429 to every request of our parts, by its own priority and fairness."""
    rejection.begin(cluster)
    time.sleep(chance.choice(_LASTS_S))
    rejection.end(cluster)


def full_state(cluster: ChaosCluster, chance: random.Random) -> None:
    with _filled(chance.choice(cluster.nodes), "filler"):
        time.sleep(chance.choice(_LASTS_S))


def full_regions(cluster: ChaosCluster, chance: random.Random) -> None:
    """Fill the file systems of the regions of all containers of a node, as a container can fill its own."""
    node = chance.choice(cluster.nodes)
    state = root(node) / "var/lib/vgpu"
    with contextlib.ExitStack() as stack:
        for shared in state.glob("allocations/*/shared"):
            stack.enter_context(_filled(node, str(shared.relative_to(state) / "filler")))
        time.sleep(chance.choice(_LASTS_S))


@contextlib.contextmanager
def _filled(node: nodes.ClusterNode, name: str) -> Iterator[None]:
    path = root(node) / "var/lib/vgpu" / name
    with contextlib.suppress(OSError), path.open("wb") as file:
        while True:
            file.write(b"\0" * (1 << 20))
    try:
        yield
    finally:
        with contextlib.suppress(OSError):  # the container ended, and its file system with it
            path.unlink(missing_ok=True)


def driver_reloaded(cluster: ChaosCluster, chance: random.Random) -> None:
    """Remove the driver of a node for a while: NVML finds no cards."""
    node = chance.choice(cluster.nodes)
    (node.driver_state / "cards").unlink(missing_ok=True)
    time.sleep(chance.choice(_LASTS_S))
    state_directory.write_cards(node.driver_state, node.cards)


def card_lost(cluster: ChaosCluster, chance: random.Random) -> None:
    node = chance.choice(cluster.nodes)
    lost = chance.randrange(len(node.cards))
    cards = [dataclasses.replace(card, healthy=index != lost) for index, card in enumerate(node.cards)]
    state_directory.write_cards(node.driver_state, cards)
    time.sleep(chance.choice(_LASTS_S))
    state_directory.write_cards(node.driver_state, node.cards)


def nvml_unknown(cluster: ChaosCluster, chance: random.Random) -> None:
    """Let NVML answer NVML_ERROR_UNKNOWN to what the plugin asks of cards, some hundred times."""
    node = chance.choice(cluster.nodes)
    state_directory.inject_faults(
        node.driver_state, ("nvmlDeviceGetMemoryInfo_v2", 999, 50), ("nvmlDeviceGetCount_v2", 999, 20)
    )
    time.sleep(chance.choice(_LASTS_S))
    state_directory.inject_faults(node.driver_state)


def _each(make: Callable[[str], Inject], word: str, within_s: float, extender_within_s: float) -> list[Fault]:
    """Return the fault for each kind of part. The extender needs longer where its Lease must expire (ADR 23)."""
    times = dict.fromkeys(("extender", "webhook", "plugin", "scheduler", "kubelet", "api server"), within_s)
    times["extender"] = extender_within_s
    return [Fault(f"{word} {kind}", make(kind), time, kind in {"plugin", "kubelet"}) for kind, time in times.items()]


FAULTS: Final = (
    *_each(_kill, "kill -9", 30, extender_within_s=45),
    *_each(_pause, "SIGSTOP", 30, extender_within_s=30),
    Fault("kill -9 arbiter", kill_arbiter, 10),
    Fault("SIGSTOP arbiter", pause_arbiter, 15),
    Fault("webhook does not run", stop_webhook, 15),
    # The extender lists again after 15 s; kube-scheduler's client finds the dead connection after 45 s (HTTP/2 pings).
    Fault("half-open: extender and scheduler", _half_open(EXTENDER), 80),
    Fault("half-open: webhook", _half_open(WEBHOOK), 40),
    Fault("half-open: plugin", _half_open(PLUGIN), 40, may_fail_pods=True),
    Fault("part cut off", cut_off, 60, may_fail_pods=True),
    Fault("slow network", slow_network, 30),
    Fault("slow api server", slow_api_server, 30),
    Fault("etcd stopped", store_stopped, 30),
    Fault("429 to our parts", too_many_requests, 30),
    Fault("state disk full", full_state, 30, may_fail_pods=True),
    Fault("regions full", full_regions, 30, may_fail_pods=True),
    Fault("driver reloaded", driver_reloaded, 60, may_fail_pods=True),
    Fault("card lost", card_lost, 60, may_fail_pods=True),
    Fault("NVML errors", nvml_unknown, 60, may_fail_pods=True),
)
