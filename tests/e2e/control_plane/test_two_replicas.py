"""Two replicas, each a kube-scheduler with its extender: the extender beside the leading kube-scheduler binds.

Ended processes are started again a second later, as the kubelet starts containers. Each has a history of its own, and
the leading replica's answers, whichever is asked.
"""

import collections
import functools
import random
import signal
import threading
import time
from collections.abc import Sequence

import httpx
import pytest

from cluster import accounts, api, progress
from cluster.additions.scheduler_replicas import EXTENDERS, SCHEDULERS, SchedulerReplica, holder, leader, two_replicas
from tests.e2e import audit
from tests.e2e.churn import create_slowly, pending
from tests.e2e.pod_namespace import PodNamespace, container, pod

pytestmark = pytest.mark.e2e

TAKEN_OVER_S = 120.0  # 34 s on an idle machine
FAULTS = ("scheduler killed", "extender killed", "both terminated", "both stopped for 25 s")


def fault_of_leader(name: str, leader: SchedulerReplica) -> None:
    match name:
        case "scheduler killed":
            leader.scheduler.process.signal(signal.SIGKILL)
        case "extender killed":
            leader.extender.process.signal(signal.SIGKILL)
        case "both terminated":
            for part in leader.parts:
                part.process.signal(signal.SIGTERM)
        case "both stopped for 25 s":
            for part in leader.parts:
                part.process.signal(signal.SIGSTOP)
            time.sleep(25)
            for part in leader.parts:
                part.process.signal(signal.SIGCONT)


def until_a_pod_runs(namespace: PodNamespace, name: str) -> float:
    """Return after how many seconds a new pod runs."""
    began = time.monotonic()
    namespace.create(pod(name, container(gpu_mem=256)))
    namespace.running(name, within_s=TAKEN_OVER_S)
    return time.monotonic() - began


def failures(namespace: PodNamespace) -> list[str]:
    """Why pods have failed."""
    failed = ((pod["metadata"]["name"], pod["status"]) for pod in namespace.all() if pod["status"]["phase"] == "Failed")
    return [f"{name}: {status.get('reason')}: {status.get('message')}" for name, status in failed]


def decided(namespace: PodNamespace, both: Sequence[SchedulerReplica]) -> list[str]:
    """Return the pods whose decisions the history has, by their UIDs; empty while the two replicas' answers differ."""
    cluster = namespace.cluster
    token = accounts.token(cluster.work, accounts.ADMIN.name)
    found = list[list[str]]()
    with httpx.Client(transport=api.Transport(cluster.within), timeout=20) as http:
        for replica in both:
            try:
                answer = http.get(
                    f"{replica.rest}/api/v1/history",
                    params={"namespace": namespace.name, "kind": "decision", "since": "1h", "limit": 1000},
                    headers={"Authorization": f"Bearer {token}"},
                )
            except httpx.TransportError:  # the replica has just been started again
                return []
            assert answer.status_code in (httpx.codes.OK, httpx.codes.SERVICE_UNAVAILABLE), answer.text
            found.append(sorted(item["event"]["pod"]["uid"] for item in answer.json().get("items", ())))
    return found[0] if found[0] == found[1] else []


@pytest.mark.timeout(900)  # with the wait for another test
@pytest.mark.usefixtures("one_at_a_time")
def test_two_replicas_place_every_pod_once_whatever_happens_to_the_leader(namespace: PodNamespace) -> None:
    cluster, since = namespace.cluster, namespace.cluster.control.audit.stat().st_size
    wanted, chance, took = [f"p{n}" for n in range(150)], random.Random(5), {}
    with two_replicas(cluster) as both:
        took["start"] = until_a_pod_runs(namespace, "first")
        creator = threading.Thread(target=create_slowly, args=(namespace, wanted, chance, 0.5))
        creator.start()
        for number, name in enumerate(FAULTS):
            fault_of_leader(name, leader(cluster, both))
            took[name] = until_a_pod_runs(namespace, f"probe-{number}")
            namespace.until(
                lambda: holder(cluster, SCHEDULERS) == holder(cluster, EXTENDERS) or None,
                "the extender beside the leading kube-scheduler holds the Lease",
                TAKEN_OVER_S,
            )
            namespace.until(
                functools.partial(decided, namespace, both), "both replicas answer with one history", TAKEN_OVER_S
            )
        creator.join()
        namespace.until(lambda: not pending(namespace), "every pod was placed", 120)
        running = {pod["metadata"]["uid"] for pod in namespace.all() if pod["status"]["phase"] == "Running"}
        namespace.until(lambda: running <= set(decided(namespace, both)), "the one history has every pod", 60)
    progress.say(f"two replicas: a new pod runs after { ({name: round(s, 1) for name, s in took.items()}) } s")
    phases = collections.Counter(namespace.phases().values())
    assert set(phases) <= {"Running", "Succeeded"}, (phases, failures(namespace))
    assert sum(phases.values()) == len(wanted) + len(took)
    for card, peak in audit.peaks(cluster.control.audit, since, namespace.name).items():
        assert peak.memory_mib <= 81920, card
        assert peak.cores <= 100, card
