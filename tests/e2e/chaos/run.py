"""Faults in random order under traffic: how long each recovery takes, and what must hold all the time.

    with ChaosCluster() as cluster, Prober(cluster) as prober:
        chaos = Run(cluster, prober, Path("out"), seed=1)
        chaos.go(FAULTS, lambda: time.monotonic() < end)

At any moment no card holds more than it has: sampled every second, and replayed from the audit log at the end. After
every few faults the traffic pauses, and all accounts are compared as in tests/e2e/fuzz.
"""

import math
import random
import statistics
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from cluster import progress, wait
from tests.e2e import audit, checkpoint, pod_namespace
from tests.e2e.chaos.chaos_cluster import ChaosCluster
from tests.e2e.chaos.faults import Fault
from tests.e2e.chaos.recovery import Recovery
from tests.e2e.chaos.traffic import NAMESPACE, Traffic, gpunodes, pods
from tests.e2e.monitor import accounts, extender_accounts, lasting, snapshot
from tests.e2e.monitor.findings import Finding, Findings, without_numbers
from tests.e2e.monitor.latency import Prober
from tests.e2e.monitor.part_processes import PartProcesses
from vgpu.domain import names

_FAULTS_BETWEEN_CHECKS: Final = 4
_QUIET_S: Final = wait.allowed(40.0)


class Run:
    """One run on one cluster; `seed` decides the order of the faults and their lengths."""

    def __init__(self, cluster: ChaosCluster, prober: Prober, out: Path, seed: int) -> None:
        self.findings = Findings(out)
        self.seconds: dict[str, list[float]] = defaultdict(list)
        self.failed_pods: Counter[str] = Counter()
        self._cluster = cluster
        self._prober = prober
        self._seed = seed
        self._chance = random.Random(seed)
        self._processes = PartProcesses(cluster)
        self._recovery = Recovery(cluster)
        self._seen_failed: set[str] = set()
        self._ended = threading.Event()
        self._audit_from = cluster.control.audit.stat().st_size

    def go(self, faults: Sequence[Fault], is_going_on: Callable[[], bool]) -> None:
        """Inject faults, each of them once in random order, again and again."""
        sampler = threading.Thread(target=self._sample)
        sampler.start()
        try:
            with Traffic(self._cluster, random.Random(self._seed + 1)) as traffic:
                self._recovery.until_normal()  # creates the resident pods
                self._inject_all(faults, is_going_on, traffic)
        finally:
            self._ended.set()
            sampler.join()
        self._replay()

    def _inject_all(self, faults: Sequence[Fault], is_going_on: Callable[[], bool], traffic: Traffic) -> None:
        count = 0
        while is_going_on():
            for fault in self._chance.sample(faults, len(faults)):
                if not is_going_on():
                    break
                self._one(fault)
                count += 1
                if count % _FAULTS_BETWEEN_CHECKS == 0:
                    self._check(traffic)
        self._check(traffic)

    def _one(self, fault: Fault) -> None:
        fault.inject(self._cluster, self._chance)
        taken = self._recovery.until_normal()
        self.seconds[fault.name].append(taken)
        progress.say(f"{fault.name}: normal after {taken:.1f} s")
        if taken > fault.within_s:
            self._add(Finding(f"not normal in {fault.within_s:g} s after: {fault.name}", f"{taken:.1f} s"))
        if math.isinf(taken):
            self._restart_parts()  # the next faults are measured on a cluster that works
        for found in self._processes.ended():
            self._add(Finding(f"{found.kind} by itself after: {fault.name}", found.detail))
        self._cluster.start_ended()
        self._processes.remember()
        self._note_failed(fault)
        self._prober.new()

    def _restart_parts(self) -> None:
        for part in self._cluster.parts:
            part.kill()
            part.start()
        self._processes.remember()

    def _note_failed(self, fault: Fault) -> None:
        for pod in pods(self._cluster) or []:
            uid, status = pod["metadata"]["uid"], pod["status"]
            if status.get("phase") != "Failed" or not status.get("reason") or uid in self._seen_failed:
                continue
            self._seen_failed.add(uid)
            self.failed_pods[fault.name] += 1
            if not fault.may_fail_pods:
                kind = f"a pod failed for good after: {fault.name}: {without_numbers(status.get('message', ''))[:60]}"
                self._add(Finding(kind, status.get("message", ""), pod["metadata"]["name"]))

    def _sample(self) -> None:
        """Compare what the bound pods hold with the cards, once a second."""
        while not self._ended.wait(1.0):
            found = pods(self._cluster)
            inventory = gpunodes(self._cluster)
            if found is not None and inventory is not None:
                self._keep(accounts.capacity(snapshot.Snapshot(tuple(found), tuple(inventory), {})))

    def _check(self, traffic: Traffic) -> None:
        """Compare everything while no pod comes or goes."""
        traffic.pause()
        self._wait_until_all_run()
        self._keep(lasting.findings(self._wrong))
        for node in self._cluster.nodes:
            try:
                checkpoint.assert_no_slice_twice(node)
            except AssertionError as twice:
                self._add(Finding("a kubelet has given a device twice", str(twice)[:1000]))
        traffic.go_on()

    def _wrong(self) -> Iterator[Finding]:
        taken = snapshot.take(self._cluster)
        yield from accounts.wrong(taken)
        yield from extender_accounts.differences(self._cluster, taken)

    def _wait_until_all_run(self) -> None:
        """Wait until every pod runs; nothing that was accepted may be left waiting once everything is normal."""
        deadline = time.monotonic() + _QUIET_S
        while (left := self._waiting()) and time.monotonic() < deadline:
            time.sleep(1)
        for name, why in left.items():
            self._add(Finding(f"a pod is lost: {without_numbers(why)[:80]}", f"{name}: {why}", name))
            self._cluster.api.delete(f"/api/v1/namespaces/{NAMESPACE}/pods/{name}")
        time.sleep(6)  # the extender corrects reports of held slices for 5 s after a pod's end

    def _waiting(self) -> dict[str, str]:
        """Return the pods that neither run nor have ended, with their conditions; not those created unmutated."""
        return {
            pod["metadata"]["name"]: _why(pod)
            for pod in pods(self._cluster) or []
            if not pod_namespace.is_running(pod)
            and pod["status"].get("phase") not in {"Failed", "Succeeded"}
            and names.SLICE in pod["spec"]["containers"][0]["resources"]["limits"]
        }

    def _replay(self) -> None:
        """Replay the audit log: the peak of each card by what was bound, whatever the samples saw."""
        for uuid, peak in audit.peaks(self._cluster.control.audit, self._audit_from, NAMESPACE).items():
            card = next(card for node in self._cluster.nodes for card in node.cards if card.uuid == uuid)
            if peak.memory_mib > card.memory_mib - card.reserved_mib or peak.cores > 100:
                self._add(Finding("a card was over its capacity", f"{uuid}: {peak}"))

    def _keep(self, found: Iterable[Finding]) -> None:
        for finding in found:
            self._add(finding)

    def _add(self, found: Finding) -> None:
        last = next(reversed(self.seconds), "")
        if self.findings.add(found, seed=self._seed, latest_fault=last):
            progress.say(f"found: {found.kind}: {found.detail[:200]}")

    def table(self) -> list[str]:
        """Return lines of text: for each fault its count, the recoveries' median and maximum, and failed pods."""
        lines = [f"{'fault':26} {'count':>5} {'median s':>9} {'worst s':>8} {'pods failed':>12}"]
        for name, taken in sorted(self.seconds.items()):
            median = statistics.median(taken)
            lines.append(f"{name:26} {len(taken):5} {median:9.1f} {max(taken):8.1f} {self.failed_pods[name]:12}")
        return [*lines, "", "findings:", *self.findings.table()]


def _why(pod: dict[str, Any]) -> str:
    conditions = [
        condition.get("message", "")
        for condition in pod["status"].get("conditions", [])
        if condition["status"] == "False"
    ]
    states = [status["state"].get("waiting", {}) for status in pod["status"].get("containerStatuses", [])]
    texts = [*conditions, *(f"{state.get('reason', '')} {state.get('message', '')}" for state in states if state)]
    return f"node {pod['spec'].get('nodeName', '-')}: {'; '.join(filter(None, texts)) or 'no reason'}"
