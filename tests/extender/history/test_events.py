from extender.history.events import Decision, End, Owner, PodName, Source

POD = PodName("uid-1", "team", "train")


def decision(source: Source) -> Decision:
    return Decision(POD, "n1", 5, 1, Owner("Job", "train"), {}, (), (), source=source)


def test_the_decision_of_bind_and_what_a_watch_shows_of_it_are_two_events() -> None:
    assert decision(Source.BIND).key() != decision(Source.WATCH).key()


def test_an_end_that_was_not_seen_is_an_interval() -> None:
    assert End(POD, "n1", "", 5, 9).is_interval
    assert not End(POD, "n1", "", 9, 9).is_interval
