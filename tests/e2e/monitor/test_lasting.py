"""A finding is kept only if every look has it, for the same subject."""

from tests.e2e.monitor import lasting
from tests.e2e.monitor.findings import Finding

_A, _B = Finding("stale", "5 of 6", "card-a"), Finding("stale", "1 of 2", "card-b")
_A_LATER = Finding("stale", "7 of 8", "card-a")


def _kept(*looks: list[Finding]) -> list[Finding]:
    given = iter(looks)
    return list(lasting.findings(lambda: next(given), looks=3, sleep=lambda _: None))


def test_what_every_look_finds_is_kept_as_last_seen() -> None:
    assert _kept([_A], [_A, _B], [_A_LATER, _B]) == [_A_LATER]


def test_other_subjects_of_a_kind_are_not_the_same_finding() -> None:
    assert _kept([_A], [_B], [_A]) == []


def test_no_look_follows_a_clean_one() -> None:
    assert _kept([]) == []
    assert _kept([_A], []) == []
