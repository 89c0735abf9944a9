"""The last decision on each waiting pod: in bounded memory."""

from extender.explain import last_decisions
from extender.explain.last_decisions import LastDecision, LastDecisions
from extender.state.fields.equal_pods import SharedRequest
from extender.state.objects import WatchedPod
from vgpu.domain.asks import host_request, request
from vgpu.domain.cards.reasons import Reason
from vgpu.domain.identifiers import NO_NODE, Namespace, PodUid

REQUEST = SharedRequest(request.parse({}), {}, host_request.of_pod({}))


def pod(uid: str, namespace: str = "team") -> WatchedPod:
    return WatchedPod(PodUid(uid), Namespace(namespace), uid, NO_NODE, False, REQUEST)


def test_the_last_reasons_and_all_attempts_count() -> None:
    times = iter((100, 200))
    kept = LastDecisions(lambda: next(times))
    kept.refused(pod("a"), {Reason.CARD_IN_USE: 3})
    kept.refused(pod("a"), {Reason.CARD_CORDONED: 1})
    assert kept.known() == {"a": LastDecision(200, 2, {Reason.CARD_CORDONED: 1})}


def test_the_pod_that_was_refused_longest_ago_is_forgotten() -> None:
    kept = LastDecisions(lambda: 0)
    for n in [*range(last_decisions.MAX_PODS), 0, -1]:
        kept.refused(pod(str(n)), {})
    assert len(kept.known()) == last_decisions.MAX_PODS
    assert "1" not in kept.known()
    assert kept.known()[PodUid("0")].attempts == 2


def test_a_crowd_in_one_namespace_displaces_no_decision_of_another() -> None:
    kept = LastDecisions(lambda: 0)
    kept.refused(pod("mine", "small"), {Reason.CARD_IN_USE: 3})
    for n in range(last_decisions.MAX_PODS + 1):
        kept.refused(pod(str(n), "crowd"), {})
    assert len(kept.known()) == last_decisions.MAX_PODS
    assert kept.get(PodUid("mine")) == LastDecision(0, 1, {Reason.CARD_IN_USE: 3})
