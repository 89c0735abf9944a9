"""What an administrator should look at: nodes, cards and pods in a state that does not heal by itself. Pure.

`of_node`, `of_cards` and `is_sound` depend on one node, or on one pod and its node, which seldom change.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import chain, islice, zip_longest
from typing import Any, Final

from extender.admin.answers import kept_room, rows
from extender.admin.exchange.snapshots import ClusterSnapshot
from extender.explain.last_decisions import LastDecision
from extender.gangs.room_holding import IMPOSSIBLE
from extender.state.fields import api_times
from extender.state.objects import GpuNode, WatchedPod
from vgpu.domain.asks import scheduler_words
from vgpu.domain.asks.node_rules import NodeRules
from vgpu.domain.cards import ownership, reasons
from vgpu.domain.cards.device import EXCLUSIVE_PROCESS
from vgpu.domain.cards.reasons import Reason
from vgpu.domain.grants.assignment import Assignment
from vgpu.domain.identifiers import CardUuid, Namespace
from vgpu.placement.snapshot import NodeView

MAX_FINDINGS: Final = 200
NEVER_FITS: Final = "NeverFits"
CARD_GONE: Final = "CardGone"
NOT_ALL: Final = "NotAllShown"

Row = dict[str, Any]


def of(
    snapshot: ClusterSnapshot,
    sees: Callable[[Namespace], bool],
    of_nodes: Iterable[Row],
    unsound: Iterable[WatchedPod],
) -> list[Row]:
    """Return at most 200 findings: nodes first, then cards, then gangs and pods that the caller may see.

    `of_nodes` are the findings of nodes and cards, `unsound` the pods that may have any. Namespaces have turns: pods of
    one with hundreds of bad ones hide no other's. The last finding says where more are left out.
    """
    of_all = chain(_of_extender(snapshot), of_nodes, _of_kept_room(snapshot, sees))
    found = list(islice(of_all, MAX_FINDINGS + 1))
    by_namespace = dict[Namespace, list[Row]]()
    for namespace, rows_of in chain(_of_gangs(snapshot, sees), _of_pods(snapshot, sees, unsound)):
        listed = by_namespace.setdefault(namespace, [])
        listed.extend(islice(rows_of, MAX_FINDINGS - len(listed)))
    turns = chain.from_iterable(zip_longest(*by_namespace.values()))
    found += islice((row for row in turns if row is not None), MAX_FINDINGS - len(found) + 1)
    if len(found) > MAX_FINDINGS:
        found[MAX_FINDINGS - 1 :] = [_finding("warning", "findings", NOT_ALL, "more has findings than is listed")]
    return found


def is_sound(pod: WatchedPod, view: NodeView | None) -> bool:
    """Whether a pod has no finding, and gets none while it and its node's view stay; `view` is of its node."""
    if pod.is_terminal:
        return True
    is_doubtful = bool(pod.parsed.problems) or rows.is_pending(pod) or any(rows.distrust(pod))
    return not is_doubtful and not _cards_gone(pod, view)


def _of_extender(snapshot: ClusterSnapshot) -> Iterator[Row]:
    for alarm in snapshot.health.alarms:
        yield _finding(alarm.severity, alarm.about, alarm.reason, alarm.detail, api_times.text(alarm.since_ms))


def _of_kept_room(snapshot: ClusterSnapshot, sees: Callable[[Namespace], bool]) -> Iterator[Row]:
    """Yield the gang for which room is kept free, which concerns all."""
    if snapshot.held is not None:
        kept = kept_room.shown(snapshot.held, sees)
        since = api_times.text(snapshot.held.since_ms)
        yield _finding("warning", kept["gang"], str(Reason.CARD_KEPT_FOR_GANG), kept_room.words(kept), since)


def _of_gangs(
    snapshot: ClusterSnapshot, sees: Callable[[Namespace], bool]
) -> Iterator[tuple[Namespace, Iterator[Row]]]:
    """Yield the findings of the gangs that fit no cards that exist, with the namespace."""
    for key, since_ms in snapshot.impossible_gangs.items():
        if sees(key[0]):
            since = api_times.text(since_ms)
            yield key[0], iter([_finding("error", kept_room.named(key), NEVER_FITS, IMPOSSIBLE, since)])


def _of_pods(
    snapshot: ClusterSnapshot, sees: Callable[[Namespace], bool], unsound: Iterable[WatchedPod]
) -> Iterator[tuple[Namespace, Iterator[Row]]]:
    """Yield the findings of each refusal and each pod, with the namespace; they are made when they are asked for."""
    for gpunode in snapshot.gpunodes.values():
        for refusal in gpunode.refusals:
            pod = snapshot.pods.get(refusal.uid)
            namespace = pod.namespace if pod else refusal.namespace
            if sees(namespace):
                about = f"pod {namespace}/{pod.name if pod else refusal.name}"
                yield namespace, iter([_finding("error", about, refusal.reason, refusal.message)])
    refused = cache(lambda rules: _refused_everywhere(rules, snapshot.views.values()))  # many pods have equal rules
    for pod in unsound:
        if sees(pod.namespace):
            yield pod.namespace, _of_pod(pod, snapshot, refused)


def of_node(view: NodeView, gpunode: GpuNode | None) -> Iterator[Row]:
    """Yield the findings of a node without those of its cards."""
    if view.blocked is not None:
        yield _finding("error", view.name, str(view.blocked), reasons.WORDS[view.blocked], view.silent_since)
    if (closed := view.marks.closed) is not None:
        severity = "warning" if closed is Reason.NODE_UNSCHEDULABLE else "error"  # a cordon is an administrator's act
        yield _finding(severity, view.name, str(closed), reasons.WORDS[closed])
    if view.blocked is not Reason.PLUGIN_AWAY and gpunode is not None:  # what it said before it went may be wrong now
        for problem in gpunode.problems:
            severity = "warning" if problem.is_unknown else "error"
            yield _finding(severity, view.name, problem.reason, problem.message, problem.since)


def of_cards(view: NodeView) -> Iterator[Row]:
    """Yield the findings of a node's cards."""
    for state in view.state.cards:
        about = f"{view.name} card {state.card.index} ({state.card.uuid})"
        if state.card.counts_on:
            yield _finding("warning", about, ownership.DUPLICATE, ownership.advice(view.name, state.card.counts_on))
            continue
        if not state.card.healthy:
            since = state.card.unhealthy_since
            yield _finding("error", about, str(Reason.CARD_UNHEALTHY), state.card.reason or "unhealthy", since)
        if state.card.exclusive_process:
            yield _finding("warning", about, str(Reason.CARD_EXCLUSIVE), EXCLUSIVE_PROCESS)
        if state.card.cordoned:
            since = state.card.cordoned_since
            yield _finding("warning", about, str(Reason.CARD_CORDONED), "an administrator has cordoned the card", since)


def _of_pod(pod: WatchedPod, snapshot: ClusterSnapshot, refused: Callable[[NodeRules], Reason | None]) -> Iterator[Row]:
    about, created = f"pod {pod.namespace}/{pod.name}", api_times.text(pod.lifecycle.created_ms)
    if pod.is_terminal:
        return
    if pod.parsed.problems:
        yield _finding("warning", about, str(Reason.INVALID_REQUEST), str(pod.parsed.problems[0]), created)
    elif rows.is_pending(pod) and not pod.is_admitted(snapshot.slice_mib):
        yield _finding("error", about, str(Reason.NOT_ADMITTED), reasons.WORDS[Reason.NOT_ADMITTED], created)
    elif rows.is_pending(pod) and (cannot := _never_fits(snapshot.decisions.get(pod.uid))):
        yield _finding("error", about, NEVER_FITS, cannot, created)
    elif rows.is_pending(pod) and (reason := _refused_elsewhere(pod, refused)):
        said = scheduler_words.refusal(pod.scheduler_message)
        yield _finding("warning", about, str(reason), f"kube-scheduler: {said}", created)
    for problem in rows.distrust(pod):
        yield _finding("error", about, "AssignmentNotTrusted", problem)
    if gone := _cards_gone(pod, snapshot.views.get(pod.node)):
        detail = f"its node {pod.node} reports no card {', '.join(gone)} any more; create the pod again"
        yield _finding("error", about, CARD_GONE, detail)


def _never_fits(last: LastDecision | None) -> str:
    """Return why no node can ever take a pod, by filter's last answer; empty where one can."""
    if last is None or not last.reasons or not last.reasons.keys() <= reasons.NEVER:
        return ""
    said = ", ".join(f"{reasons.WORDS[reason]} ({reason})" for reason, _ in reasons.ordered(last.reasons))
    return f"no node can ever take it as it is: {said}"


def _refused_elsewhere(pod: WatchedPod, refused: Callable[[NodeRules], Reason | None]) -> Reason | None:
    """Return why no node takes a pod whatever its cards have free; None where one may, or the scheduler said nothing.

    Room on cards does not end this: a taint, a selector, a volume, or another thing that kube-scheduler looks at.
    """
    if not pod.scheduler_message:
        return None
    return Reason.SCHEDULER_REFUSED if pod.unknown_refusals else refused(pod.rules)


def _refused_everywhere(rules: NodeRules, views: Iterable[NodeView]) -> Reason | None:
    """Return why most nodes refuse a pod with these rules; None where one does not, or there is no node."""
    counted = Counter[Reason]()
    for view in views:
        refusal = rules.refusal(view.name, view.marks)
        if refusal is None:
            return None
        counted[refusal.reason] += 1
    return counted.most_common(1)[0][0] if counted else None


def _cards_gone(pod: WatchedPod, view: NodeView | None) -> list[CardUuid]:
    """Return the cards that a pod holds and its node does not report, such as cards that were replaced."""
    if view is None or view.blocked is Reason.PLUGIN_AWAY or not isinstance(pod.assignment, Assignment):
        return []
    return sorted(pod.assignment.gpus() - {state.card.uuid for state in view.state.cards})


def _finding(severity: str, about: str, reason: str, detail: str, since: str = "") -> Row:
    return {"severity": severity, "about": about, "reason": reason, "detail": detail, "since": since}
