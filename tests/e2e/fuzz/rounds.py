"""A run of rounds: hostile pods for some seconds, then quiet, then all accounts are compared, then all pods go.

    with Cluster() as cluster, Prober(cluster) as prober:
        run = rounds.Run(cluster, prober, Path("out"), seed=1)
        run.round()

The prober and a watch over the processes run all the time. A part that ends is started again, so that the run goes on.
"""

import itertools
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from cluster import wait
from cluster.cluster import GpuCluster
from tests.e2e.fuzz import cleanup, states, workers
from tests.e2e.fuzz.admission_metrics import AdmissionMetrics
from tests.e2e.fuzz.tenant import NAMESPACE
from tests.e2e.fuzz.webhook_latency import WebhookLatency
from tests.e2e.monitor import accounts, extender_accounts, lasting, latency, snapshot
from tests.e2e.monitor.findings import Finding, Findings
from tests.e2e.monitor.latency import Answer, Prober
from tests.e2e.monitor.part_processes import PartProcesses
from tests.e2e.monitor.snapshot import Document
from tests.hostile_pods import generator
from tests.hostile_pods.case import Case

CREATORS: Final = 6
FIRE_S: Final = 40.0
_QUIET_S: Final = 25.0
_ENDING_S: Final = 8.0  # a part that ends by an error refuses connections for some seconds first
_ATTACKS_OF_A_ROUND: Final = 1000


class Run:
    """One run of the fuzzer on one cluster.

    Args:
        cluster: its parts are watched, and started again where they end.
        prober: asks the parts all the time.
        out: folder of the findings.
        seed: of the first pod, and of the first attack on a socket.
        fire_s: how long each round creates pods.
        creators: how many threads create pods.
        pause_s: how long each of them waits after a pod.
        cases: the pods, in place of those from `seed` on.
    """

    def __init__(
        self,
        cluster: GpuCluster,
        prober: Prober,
        out: Path,
        seed: int,
        fire_s: float = FIRE_S,
        creators: int = CREATORS,
        pause_s: float = 0.0,
        cases: Iterable[Case] | None = None,
    ) -> None:
        self.findings = Findings(out)
        self.pods = workers.Pods(iter(cases) if cases is not None else map(generator.make, itertools.count(seed)))
        self.fired_s = 0.0
        self._cluster = cluster
        self._prober = prober
        self._fire_s = fire_s
        self._creators = creators
        self._pause_s = pause_s
        self._attack_seed = seed
        self._failed: list[Answer] = []
        self._processes = PartProcesses(cluster)
        self._metrics = AdmissionMetrics(cluster)
        self._webhooks = WebhookLatency(cluster.control.audit, latency.SLOW_S)

    def round(self) -> None:
        """Fire, compare, and clean up."""
        self._fire()
        self._wait_until_quiet()
        self._compare()
        cleanup.delete_all(self._cluster)
        self.pods.accepted.clear()
        self._keep(cleanup.until_free(self._cluster))
        self._watch()
        self._keep(self._metrics.grown())
        self._keep(self._webhooks.slow())

    def _keep(self, found: Iterable[Finding]) -> None:
        """Keep findings with the creations that may have caused them."""
        for finding in found:
            self.findings.add(finding, suspects=self.pods.suspects())

    def _fire(self) -> None:
        ended, started = threading.Event(), time.monotonic()
        shared = (self._cluster, self.pods, self.findings, ended)
        threads = [
            threading.Thread(target=workers.create_pods, args=(*shared, self._pause_s)) for _ in range(self._creators)
        ]
        attack = (self._cluster, self._attack_seed, self.findings, ended)
        threads.append(threading.Thread(target=workers.attack_sockets, args=attack))
        for thread in threads:
            thread.start()
        while time.monotonic() < started + self._fire_s:
            time.sleep(0.5)
            self._watch()
        ended.set()
        for thread in threads:
            thread.join()
        self._attack_seed += _ATTACKS_OF_A_ROUND
        self.fired_s += time.monotonic() - started

    def _watch(self) -> None:
        ended = self._processes.ended()
        self._keep(ended)
        self._keep(self._processes.replaced())
        answers = self._prober.new()
        self._keep(_slow(answers))
        self._failed += [answer for answer in answers if answer.has_failed]
        if ended:
            self._revive({found.kind for found in ended})
        self._keep_failed(time.time() - _ENDING_S)
        self._processes.remember()

    def _keep_failed(self, before: float) -> None:
        """Keep failed answers from before a time; later ones may come from a part that is about to end."""
        self._keep(
            Finding(f"{failure.what} answered {failure.status}", "") for failure in self._failed if failure.at < before
        )
        self._failed = [failure for failure in self._failed if failure.at >= before]

    def _revive(self, reported: set[str]) -> None:
        """Start again what has ended, without the pods, because the part may end at one of them again."""
        cleanup.delete_all(self._cluster)
        self._keep(found for found in self._processes.ended() if found.kind not in reported)
        self._cluster.start_ended()
        try:
            for part in self._cluster.parts:
                part.wait_ready()
        except wait.Overdue as overdue:
            self.findings.add(Finding("a part does not become ready again", str(overdue)[-1500:]))
        self._prober.new()
        self._failed.clear()  # the end of the part is the finding

    def _wait_until_quiet(self) -> None:
        """Wait until no pod changes any more, at most 25 s: some pods crash and restart for ever."""
        deadline, last = time.monotonic() + _QUIET_S, None
        while time.monotonic() < deadline:
            self._watch()
            now = [(pod["metadata"]["uid"], pod["status"]) for pod in cleanup.pods(self._cluster)]
            if now == last:
                return
            last = now
            time.sleep(2.5)

    def _compare(self) -> None:
        """Keep what is wrong and stays wrong."""
        ours: dict[str, Document] = {}

        def look() -> Iterator[Finding]:
            taken = snapshot.take(self._cluster)
            ours.clear()
            ours.update((pod["metadata"]["name"], pod) for pod in taken.pods if _is_ours(pod))
            yield from states.wrong(ours.values())
            yield from accounts.wrong(taken)
            yield from extender_accounts.differences(self._cluster, taken)

        for finding in lasting.findings(look):
            self.findings.add(finding, **_about(finding.subject, ours))


def _is_ours(pod: Document) -> bool:
    return bool(pod["metadata"]["namespace"] == NAMESPACE)


def _slow(answers: Iterable[Answer]) -> list[Finding]:
    return [
        Finding(
            f"slow: {answer.what}",
            f"{answer.ms:.0f} ms, status {answer.status}, prober late by {answer.late_ms:.0f} ms",
        )
        for answer in answers
        if answer.is_slow
    ]


def _about(name: str, pods: dict[str, Document]) -> dict[str, Any]:
    seed = workers.seed_of(name)
    if seed is None:
        return {}
    pod = dict(pods.get(name, {}))
    pod["metadata"] = {key: value for key, value in pod.get("metadata", {}).items() if key != "managedFields"}
    return {"seed": seed, "made": generator.make(seed).kind, "pod": str(pod)[:4000]}


def summary(run: Run, prober: Prober) -> list[str]:
    """Return the final table as lines of text."""
    created = run.pods.answers.total()
    rate = created / run.fired_s if run.fired_s else 0.0
    answers = ", ".join(f"{status}: {count}" for status, count in run.pods.answers.most_common())
    lines = [f"{created} pods in {run.fired_s:.0f} s of creating: {rate:.1f} pods/s; answers {answers}", ""]
    refusals = [f"{count:7}  {text}" for text, count in run.pods.refusals.most_common(25)]
    tables = ["refusals by message:", *refusals, "", *latency.table(prober.answers), "", "findings:"]
    return [*lines, *tables, *run.findings.table()]
