"""The last decision on each waiting pod: in bounded memory."""

from extender.explain import last_decisions
from extender.explain.last_decisions import LastDecision, LastDecisions
from vgpu.domain.cards.reasons import Reason
from vgpu.domain.identifiers import PodUid


def test_the_last_reasons_and_all_attempts_count() -> None:
    times = iter((100, 200))
    kept = LastDecisions(lambda: next(times))
    kept.refused(PodUid("a"), {Reason.CARD_IN_USE: 3})
    kept.refused(PodUid("a"), {Reason.CARD_CORDONED: 1})
    assert kept.known() == {"a": LastDecision(200, 2, {Reason.CARD_CORDONED: 1})}


def test_the_pod_that_was_refused_longest_ago_is_forgotten() -> None:
    kept = LastDecisions(lambda: 0)
    for n in [*range(last_decisions.MAX_PODS), 0, -1]:
        kept.refused(PodUid(str(n)), {})
    assert len(kept.known()) == last_decisions.MAX_PODS
    assert "1" not in kept.known()
    assert kept.known()[PodUid("0")].attempts == 2
