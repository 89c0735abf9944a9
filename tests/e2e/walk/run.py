"""A seeded walk: steps of users and administrators, now and then a fault, and after each round all views must agree.

with WalkCluster() as cluster:
    walk = Walk(cluster, Path("out"), seed=3)
    walk.go(lambda: time.monotonic() < end)
"""

import random
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import httpx

from cluster import api, progress, wait
from tests.e2e import audit, checkpoint
from tests.e2e.monitor import accounts, extender_accounts, snapshot
from tests.e2e.monitor.findings import Finding, Findings, without_numbers
from tests.e2e.walk import actions, faults, plan, queue, views, waiting
from tests.e2e.walk.faults import Breaks
from tests.e2e.walk.walk_cluster import WalkCluster
from tests.e2e.walk.walker import Walker
from vgpu.domain.errors import KubeletError
from vgpu.node.containers.refusal import NodeReason

_LOOK_S: Final = 3.0
QUIET_S: Final = wait.allowed(30.0)


class Walk:
    """One walk on one cluster.

    `seed` decides all requests and faults, however long the rounds take.
    """

    def __init__(self, cluster: WalkCluster, out: Path, seed: int, chosen: Sequence[Breaks] = faults.FAULTS) -> None:
        self.findings = Findings(out)
        self.rounds = 0
        self.steps: Counter[str] = Counter()
        self.faults: Counter[str] = Counter()
        self.quiet_s: list[float] = []
        self._cluster = cluster
        self._seed = seed
        self._walker = Walker(cluster, out / "steps.jsonl")
        self._plan = plan.rounds(seed, actions.ACTIONS, actions.delete)
        self._choice = chosen
        self._left: list[Breaks] = []
        self._audit_from = cluster.control.audit.stat().st_size

    def go(self, is_going_on: Callable[[], bool]) -> None:
        """Walk in rounds."""
        self._walker.prepare()
        while is_going_on():
            self._steps()
            self._quiet(may_fail_pods=self._fault())
            self.rounds += 1
        self._replay()

    def _steps(self) -> None:
        for step in next(self._plan):
            self._walker.take(self.rounds, step)
            self.steps[step.action] += 1
        for finding in self._walker.findings:
            self._add(finding)
        self._walker.findings.clear()

    def _drawn(self, *about: object) -> random.Random:
        """Return the randomness of one fault: what one draws changes no other."""
        return random.Random(f"{self._seed} {about}")

    def _fault(self) -> bool:
        """Inject the next fault: each once, in random order, again and again. Return whether it may fail pods."""
        if not self._choice:
            return False
        if not self._left:
            self._left = self._drawn("order", self.rounds).sample(self._choice, len(self._choice))
        fault = self._left.pop()
        progress.say(f"round {self.rounds}: {fault.name}")
        self.faults[fault.name] += 1
        fault.inject(self._cluster, self._drawn("fault", self.rounds))
        return fault.may_fail_pods

    def _quiet(self, *, may_fail_pods: bool) -> None:
        """Wait until all views agree; what differs still after `QUIET_S` is found.

        A part that ends by itself is started again, as the kubelet does: a replica ends when the other one leads. After
        a fault that may fail pods, those are deleted that hold devices of another card than theirs: a pod that the
        plugin could not read gets any devices, and keeps them.
        """
        self._cluster.start_ended()
        started = time.monotonic()
        found = list(self._wrong())
        while found and time.monotonic() < started + QUIET_S:
            progress.say(f"not yet quiet: {found[0].kind}: {found[0].detail[:200]}")
            time.sleep(_LOOK_S)
            self._cluster.start_ended()
            if may_fail_pods:
                self._remove(has_other_card)
            found = list(self._wrong())
        self.quiet_s.append(time.monotonic() - started)
        progress.say(f"round {self.rounds}: quiet after {self.quiet_s[-1]:.0f} s")
        for finding in found:
            self._add(finding)
        self._remove(has_ended)

    def _wrong(self) -> Iterator[Finding]:
        try:
            yield from self._differences()
        except (api.RequestRefused, httpx.HTTPError, OSError, KubeletError) as error:
            yield Finding(f"no answer: {without_numbers(str(error))[:80]}", repr(error)[:1000])

    def _differences(self) -> Iterator[Finding]:
        seen = snapshot.take(self._cluster)
        moving = [item["metadata"]["name"] for item in seen.pods if is_moving(item)]
        if moving:
            yield Finding("pods neither run nor end", ", ".join(moving))
            return
        yield from accounts.wrong(seen)
        yield from views.differences(self._cluster)
        yield from waiting.findings(self._cluster, seen)
        yield from waiting.quota(self._cluster, seen, plan.LIMITED)
        yield from queue.differences(self._cluster, seen)
        closed = views.closed_cards(seen)
        answers = extender_accounts.differences(self._cluster, seen)
        yield from (finding for finding in answers if finding.subject not in closed)
        yield from self._twice()

    def _twice(self) -> Iterator[Finding]:
        for node in self._cluster.nodes:
            try:
                checkpoint.assert_no_slice_twice(node)
            except AssertionError as twice:
                yield Finding("a kubelet has given a device twice", str(twice)[:1000])

    def _remove(self, is_over: Callable[[dict[str, Any]], bool]) -> None:
        """Delete pods for which nothing more can be expected."""
        for item in filter(is_over, self._walker.pods()):
            self._walker.delete(item)

    def _replay(self) -> None:
        """Replay the audit log: the peak of each card by what was bound, whatever was seen."""
        cards = {card.uuid: card for node in self._cluster.nodes for card in node.cards}
        for uuid, peak in audit.peaks(self._cluster.control.audit, self._audit_from, plan.NAMESPACE).items():
            if peak.memory_mib > cards[uuid].memory_mib - cards[uuid].reserved_mib or peak.cores > 100:  # type: ignore[index]
                self._add(Finding("a card was over its capacity", f"{uuid}: {peak}"))

    def _add(self, found: Finding) -> None:
        context = {"seed": self._seed, "round": self.rounds, "latest_fault": next(reversed(self.faults), "")}
        self.findings.add(found, **context)
        progress.say(f"found: {found.kind}: {found.detail[:300]}")

    def table(self) -> list[str]:
        """Return lines of text: rounds, steps, faults and findings."""
        counts = [f"{name} {count}" for name, count in (*sorted(self.steps.items()), *sorted(self.faults.items()))]
        longest = max(self.quiet_s, default=0.0)
        return [f"{self.rounds} rounds, quiet after {longest:.0f} s at most", *counts, "", *self.findings.table()]


def is_moving(item: dict[str, object]) -> bool:
    """Whether a pod is between two states: bound and not running, or being deleted."""
    pod: dict[str, dict[str, object]] = item  # type: ignore[assignment]
    if "deletionTimestamp" in pod["metadata"]:
        return True
    if not pod["spec"].get("nodeName") or pod["status"].get("phase") in ("Failed", "Succeeded"):
        return False
    statuses = pod["status"].get("containerStatuses") or []
    return not statuses or not all(status["ready"] for status in statuses)  # type: ignore[attr-defined]


def has_ended(item: dict[str, Any]) -> bool:
    """Whether a pod has ended: the kubelet fails pods for good while a plugin does not run, as the guide says."""
    return item["status"].get("phase") in ("Failed", "Succeeded")


def has_other_card(item: dict[str, Any]) -> bool:
    """Whether a container of a pod holds devices of another card than it was assigned, and so never starts."""
    states = [status["state"].get("waiting") or {} for status in item["status"].get("containerStatuses") or []]
    return any(NodeReason.CARD_MISMATCH in state.get("message", "") for state in states)
