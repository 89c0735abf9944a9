"""What nodes report of their cards: what cannot be read is left out, and only what has grown is news."""

from extender.state import objects
from extender.state.fields import card_use
from extender.state.fields.card_use import ReportedCardUse
from vgpu.domain.cards import measured_card
from vgpu.domain.cards.measured_card import CardSensors
from vgpu.domain.cards.measured_use import MeasuredUse
from vgpu.domain.identifiers import NO_CONTAINER, NO_POD, CardUuid

GPU = CardUuid("GPU-a")


def period(from_ms: int, until_ms: int) -> MeasuredUse:
    return MeasuredUse(NO_POD, NO_CONTAINER, GPU, from_ms, until_ms, 30)


def test_what_a_node_writes_is_what_the_extender_reads() -> None:
    written = measured_card.as_json([period(100, 200), period(0, 100)], {GPU: CardSensors(512, 61, 250)})
    assert card_use.decode({"cardUse": written}) == (
        ReportedCardUse(GPU, 100, 200, 30, 512, 61, 250),
        ReportedCardUse(GPU, 0, 100, 30),
    )


def test_what_cannot_be_read_is_left_out() -> None:
    good = {"gpu": "GPU-a", "fromMs": 1, "untilMs": 2, "busyMs": 1}
    bad = [None, {}, {**good, "untilMs": 1}, {**good, "gpu": "<b>"}, {**good, "celsius": -1}, {**good, "busyMs": "x"}]
    assert card_use.decode({"cardUse": [*bad, good]}) == (ReportedCardUse(GPU, 1, 2, 1),)
    assert card_use.decode({"cardUse": "x"}) == card_use.decode({}) == ()


def test_only_what_has_grown_is_news() -> None:
    old, grown = ReportedCardUse(GPU, 1, 2, 1, 5), ReportedCardUse(GPU, 1, 3, 1, 5)
    assert list(card_use.news((old,), (grown, ReportedCardUse(GPU, 0, 1, 1)))) == [grown, ReportedCardUse(GPU, 0, 1, 1)]
    assert list(card_use.news((old,), (ReportedCardUse(GPU, 1, 2, 1, None),))) == []


def test_a_report_about_cards_use_is_no_news_of_cards() -> None:
    raw = b'{"metadata":{"name":"n","resourceVersion":"%d"},"status":{"sliceMiB":256,"cards":[],"cardUse":[%s]}}'
    entry = b'{"gpu":"GPU-a","fromMs":1,"untilMs":2,"busyMs":1}'
    before, after = objects.gpunode(raw % (1, b"")), objects.gpunode(raw % (2, entry))
    assert before.differs_in_usage_only(after)
