"""The history of an extender that is killed during a churn, compared with the API server's audit log."""

import datetime as dt
import random
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from cluster import progress
from extender.history import folder
from extender.history.recording.events import Decision, End, Event, Start
from extender.history.reporting.prices import Prices
from extender.history.reporting.reports import HistoryFilters
from extender.history.reporting.sql_reports import SqlReports
from extender.history.storage import database
from tests.e2e import audit
from tests.e2e.churn import create_slowly, pending
from tests.e2e.pod_namespace import PodNamespace
from vgpu.domain import names
from vgpu.domain.grants import assignment
from vgpu.domain.identifiers import Namespace

pytestmark = pytest.mark.e2e

PODS = 120
SECOND_MS = 1_000


class Truth(NamedTuple):
    """What the audit log says of a pod; times in Unix milliseconds, None where there is no such write.

    The Binding was stored between `binding_ms` and `bound_ms`.
    """

    node: str
    cards: frozenset[str]
    binding_ms: int
    bound_ms: int
    started_ms: int | None
    ended_ms: int | None


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def ms(text: str) -> int:
    return int(dt.datetime.fromisoformat(text).timestamp() * SECOND_MS)


def truths(log: Path, since: int, namespace: str) -> dict[str, Truth]:
    """Replay the log: the Binding of each pod, the first start of its container, and its end, by UID."""
    found: dict[str, Truth] = {}
    for event in audit.stored(e for e in audit.read(log, since) if e["objectRef"].get("namespace") == namespace):
        request, response = event.get("requestObject") or {}, event.get("responseObject") or {}
        if audit.is_binding(event):
            text = request["metadata"]["annotations"][names.ASSIGNMENT]
            cards = assignment.decode(text).gpus()
            times = ms(event["requestReceivedTimestamp"]), ms(event["stageTimestamp"])
            found[request["metadata"]["uid"]] = Truth(request["target"]["name"], cards, *times, None, None)
        elif response.get("kind") == "Pod" and (uid := response["metadata"]["uid"]) in found:
            found[uid] = advanced(found[uid], event, response)
    return found


def advanced(truth: Truth, event: dict[str, Any], pod: dict[str, Any]) -> Truth:
    for status in pod["status"].get("containerStatuses", ()):
        begun = status["state"].get("running") or status["state"].get("terminated") or {}
        if truth.started_ms is None and begun.get("startedAt"):
            truth = truth._replace(started_ms=ms(begun["startedAt"]))
    if truth.ended_ms is not None:
        return truth
    if pod["status"].get("phase") in ("Succeeded", "Failed"):
        exits = [status["state"].get("terminated", {}) for status in pod["status"].get("containerStatuses", ())]
        finished = [ms(state["finishedAt"]) for state in exits if state.get("finishedAt")]
        return truth._replace(ended_ms=max(finished, default=ms(event["requestReceivedTimestamp"])))
    if event["verb"] == "delete" and pod["metadata"].get("deletionGracePeriodSeconds", 0) == 0:
        return truth._replace(ended_ms=ms(event["requestReceivedTimestamp"]))
    return truth


def events(home: Path, namespace: str) -> Iterator[Event]:
    engine = database.engine(database.sqlite_url(folder.sqlite_file(home)))
    filters, cursor = HistoryFilters(namespaces=frozenset({Namespace(namespace)})), ""
    while True:
        page = SqlReports(engine, Prices(), lambda: 0).history(filters, cursor, 1000)
        yield from (entry.event for entry in page.entries)
        cursor = page.cursor
        if not cursor:
            engine.dispose()
            return


def delete_slowly(namespace: PodNamespace, wanted: list[str]) -> None:
    """Delete every other pod when eight later ones were created: while it waits, is started, runs, or has ended."""
    for name, later in list(zip(wanted, wanted[8:], strict=False))[::2]:
        namespace.until(lambda: later in namespace.phases(), f"{later} was created")  # noqa: B023 - at once
        namespace.cluster.api.delete(f"{namespace.pods_path}/{name}")


@pytest.mark.timeout(600)
def test_the_history_of_a_killed_extender_equals_the_audit_log(namespace: PodNamespace) -> None:
    cluster, since = namespace.cluster, namespace.cluster.control.audit.stat().st_size
    chance = random.Random(10)
    wanted = [f"p{n}" for n in range(PODS)]
    threads = [
        threading.Thread(target=create_slowly, args=(namespace, wanted, random.Random(11), 0.2)),
        threading.Thread(target=delete_slowly, args=(namespace, wanted)),
    ]
    for thread in threads:
        thread.start()
    outages = []
    for _ in range(3):
        time.sleep(chance.uniform(2, 5))
        killed_ms = now_ms()
        cluster.extender.kill()
        time.sleep(chance.uniform(0, 3))  # pods start and end meanwhile
        cluster.extender.start()
        outages.append((killed_ms, now_ms()))
    for thread in threads:
        thread.join()
    namespace.until(lambda: not pending(namespace), "every pod was placed", 240)
    namespace.until(lambda: "Running" not in namespace.phases().values(), "every pod ended", 120)
    time.sleep(3)
    truth = truths(cluster.control.audit, since, namespace.name)
    found = list(events(cluster.maker.history, namespace.name))
    compare(without_unknowable(truth, found, outages), found)


def without_unknowable(truth: dict[str, Truth], found: list[Event], outages: list[tuple[int, int]]) -> dict[str, Truth]:
    """Leave out the pods that the history lacks because they were bound at a kill and gone before the next start."""
    decided = {event.pod.uid for event in found if isinstance(event, Decision)}
    known = {uid: life for uid, life in truth.items() if uid in decided or not is_unknowable(life, outages)}
    progress.say(f"{len(truth) - len(known)} pods were bound at a kill and gone before the next start")
    return known


def is_unknowable(truth: Truth, outages: list[tuple[int, int]]) -> bool:
    """Whether an extender was killed during the pod's Binding, and the pod had ended when the next one was ready."""
    return truth.ended_ms is not None and any(
        truth.binding_ms - SECOND_MS <= killed_ms <= truth.bound_ms + SECOND_MS and truth.ended_ms <= ready_ms
        for killed_ms, ready_ms in outages
    )


def compare(truth: dict[str, Truth], found: list[Event]) -> None:
    decisions: dict[str, Decision] = {event.pod.uid: event for event in found if isinstance(event, Decision)}
    starts: dict[str, Start] = {event.pod.uid: event for event in found if isinstance(event, Start)}
    ends: dict[str, End] = {event.pod.uid: event for event in found if isinstance(event, End) and not event.container}
    unseen = sum(end.is_interval for end in ends.values())
    progress.say(
        f"{len(truth)} pods bound; history: {len(decisions)} decisions, "
        f"{sum(event.source == 'watch' for event in decisions.values())} of them from the watch, {len(starts)} starts, "
        f"{len(ends)} ends, {unseen} of them unseen"
    )
    assert len([event for event in found if isinstance(event, Decision)]) == len(decisions)
    assert decisions.keys() == truth.keys()
    assert ends.keys() == {uid for uid, life in truth.items() if life.ended_ms is not None}
    for uid, known in truth.items():
        decision = decisions[uid]
        assert (decision.node, frozenset(share.gpu for share in decision.cards)) == (known.node, known.cards)
        assert known.binding_ms - SECOND_MS <= decision.at_ms <= known.bound_ms + SECOND_MS, (decision, known)
        if uid in starts:
            assert starts[uid].at_ms == known.started_ms
        elif known.started_ms is not None:
            assert ends[uid].is_interval, (uid, known)  # it started and ended while no extender ran
        check_end(ends.get(uid), known)


def check_end(end: End | None, known: Truth) -> None:
    if end is not None and known.ended_ms is not None:
        assert end.after_ms - SECOND_MS <= known.ended_ms <= end.at_ms + SECOND_MS, (end, known)
