"""Threads that create hostile pods, do more with those accepted, and delete the oldest, until they are told to stop."""

import itertools
import re
import threading
import time
from collections import Counter, deque
from collections.abc import Iterator
from typing import Final

from cluster.cluster import GpuCluster
from tests.e2e.fuzz import actions, sockets
from tests.e2e.fuzz.tenant import Reply, Request, Tenant
from tests.e2e.monitor.findings import Finding, Findings, without_numbers
from tests.hostile_pods.case import Case

MOST_PODS: Final = 60  # accepted and not deleted again
_SUSPECTS: Final = 12
# Answers 5xx of the API server itself: to wrong server-side applies, to objects too large for etcd, to deep patches.
_OWN_FAULT: Final = re.compile(
    "failed to (create typed|convert new)|ResourceExhausted|request is too large|requested timeout"
)


class Pods:
    """What the workers share: the next seed, the accepted pods, and the latest requests."""

    def __init__(self, cases: Iterator[Case]) -> None:
        self.lock = threading.Lock()
        self.cases = cases
        self.accepted: deque[str] = deque()
        self.answers: Counter[str] = Counter()
        self.refusals: Counter[str] = Counter()
        self._latest: deque[tuple[float, float, Case]] = deque(maxlen=200)  # start, seconds

    def note(self, case: Case, reply: Reply) -> None:
        """Remember how long a creation took, and how it was answered."""
        with self.lock:
            self._latest.append((time.time() - reply.seconds, reply.seconds, case))
            self.answers[str(reply.status)] += 1
            if not reply.is_success:
                self.refusals[without_numbers(reply.message)[:70]] += 1

    def suspects(self) -> list[dict[str, object]]:
        """Return the slowest creations of the last ten seconds: one of them may have caused what was found."""
        with self.lock:
            recent = [call for call in self._latest if call[0] + call[1] > time.time() - 10]
        slowest = sorted(recent, key=lambda call: -call[1])[:_SUSPECTS]
        return [{"seed": case.seed, "seconds": round(taken, 2), "made": case.kind} for _, taken, case in slowest]


def name_of(seed: int) -> str:
    """Return the name of the pod of a seed."""
    return f"s{seed}"


def seed_of(name: str) -> int | None:
    """Return the seed of a pod's name."""
    return int(name[1:]) if name[:1] == "s" and name[1:].isdigit() else None


def judge(request_kind: str, reply: Reply) -> Iterator[Finding]:
    """Yield what is wrong with an answer of the API server."""
    message = without_numbers(reply.message)
    if (reply.status == 0 or reply.status >= 500) and not _OWN_FAULT.search(reply.message):
        yield Finding(f"{request_kind} answered {reply.status}: {message[:80]}", reply.message[:1000])
    if "admission webhook" in reply.message and "spec." not in reply.message and "metadata." not in reply.message:
        yield Finding(f"a refusal names no field: {message[:80]}", reply.message[:1000])


def create_pods(cluster: GpuCluster, pods: Pods, findings: Findings, ended: threading.Event, pause_s: float) -> None:
    """The work of one thread; it pauses after each pod."""
    tenant = Tenant(cluster)
    try:
        while not ended.is_set():
            _one(tenant, pods, findings)
            ended.wait(pause_s)
    except StopIteration:
        pass  # a replay has no more pods
    finally:
        tenant.close()


def _one(tenant: Tenant, pods: Pods, findings: Findings) -> None:
    with pods.lock:
        case = next(pods.cases)
        gone = [pods.accepted.popleft() for _ in range(len(pods.accepted) - MOST_PODS)]
    for old in gone:
        tenant.send(actions.deletion(old))
    seed, name = case.seed, name_of(case.seed)
    reply = tenant.send(actions.creation(case, name))
    pods.note(case, reply)
    for found in judge("create", reply):
        findings.add(found, seed=seed, made=case.kind)
    if reply.is_success:
        with pods.lock:
            pods.accepted.append(name)
        for request in actions.followups(seed, name):
            for found in judge(_kind(request, name), tenant.send(request)):
                findings.add(found, seed=seed, made=case.kind, request=request.body[:500])


def _kind(request: Request, name: str) -> str:
    last = request.path.partition("?")[0].rpartition("/")[2]
    return f"{request.method} {'pod' if last == name else last}"


def attack_sockets(cluster: GpuCluster, first_seed: int, findings: Findings, ended: threading.Event) -> None:
    """Send attacks to the parts' sockets, four a second at most."""
    for seed in itertools.count(first_seed):
        if ended.wait(0.25):
            return
        for found in sockets.carry_out(sockets.make(seed), cluster.within):
            findings.add(found, seed=seed, made="socket")
