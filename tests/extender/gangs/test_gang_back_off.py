"""The pause between the attempts of a gang."""

from extender.gangs import back_off


def test_the_pause_is_doubled_up_to_the_longest() -> None:
    assert [back_off.pause_s(10.0, 300.0, failures) for failures in range(1, 8)] == [10, 20, 40, 80, 160, 300, 300]


def test_a_gang_that_waits_for_months_does_not_end_the_extender() -> None:
    assert back_off.pause_s(600.0, 7200.0, 5000) == 7200
