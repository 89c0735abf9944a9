"""What the faults of the walk wait for."""

from tests.e2e.walk import faults


def test_a_card_has_left_its_node_when_the_node_reports_it_no_more_or_as_unhealthy() -> None:
    assert faults.offers({"status": {"cards": [{"uuid": "b"}, {"uuid": "a"}]}}, "a")
    assert not faults.offers({"status": {"cards": [{"uuid": "a", "healthy": False}]}}, "a")
    assert not faults.offers({"status": {"cards": [{"uuid": "b"}]}}, "a")
    assert not faults.offers({}, "a")
