"""Summaries of refusals."""

from msgspec import structs

from extender.history.recording import refusals
from extender.history.recording.refusals import PERIOD_MS, RefusalPeriods
from extender.state.fields.equal_pods import SharedRequest
from extender.state.objects import WatchedPod
from tests.extender.history.make import HOUR, MONDAY
from vgpu.domain.asks import host_request, request
from vgpu.domain.cards.reasons import Reason
from vgpu.domain.identifiers import NO_NODE, Namespace, PodUid

REQUEST = SharedRequest(request.parse({}), {}, host_request.of_pod({}))
POD = WatchedPod(PodUid("uid-1"), Namespace("team"), "p1", NO_NODE, False, REQUEST)


def test_a_period_that_began_while_the_clock_was_ahead_ends_when_it_is_right_again() -> None:
    periods = RefusalPeriods()
    list(periods.add(POD, {Reason.CARD_TOO_SMALL: 1}, MONDAY + 2400 * HOUR))
    list(periods.add(POD, {Reason.CARD_TOO_SMALL: 2}, MONDAY))
    (event,) = periods.due(MONDAY + 1)
    assert (event.since_ms, event.until_ms, event.reasons) == (MONDAY, MONDAY, {"CardTooSmall": 2})
    list(periods.add(POD, {Reason.CARD_TOO_SMALL: 1}, MONDAY))
    assert not list(periods.due(MONDAY + PERIOD_MS - 1))
    assert len(list(periods.due(MONDAY + PERIOD_MS))) == 1


def test_a_crowd_in_one_namespace_cuts_no_period_of_another_short() -> None:
    periods, cut = RefusalPeriods(), []
    list(periods.add(POD, {Reason.CARD_TOO_SMALL: 1}, MONDAY))
    for n in range(refusals.MAX_PODS + 1):
        crowd = structs.replace(POD, uid=PodUid(f"crowd-{n}"), namespace=Namespace("crowd"))
        cut += list(periods.add(crowd, {Reason.CARD_TOO_SMALL: 1}, MONDAY))
    assert [event.pod.namespace for event in cut] == ["crowd", "crowd"]
    list(periods.add(POD, {Reason.CARD_TOO_SMALL: 1}, MONDAY + 1))
    (event,) = periods.end(POD.uid)
    assert (event.attempts, event.since_ms) == (2, MONDAY)
