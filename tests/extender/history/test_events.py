from extender.history.recording.events import Decision, DecisionSource, End, PodName, PodOwner
from vgpu.domain.identifiers import NO_CONTAINER, Namespace, NodeName, PodUid

N1 = NodeName("n1")

POD = PodName(PodUid("uid-1"), Namespace("team"), "train")


def decision(source: DecisionSource) -> Decision:
    return Decision(POD, N1, 5, 1, PodOwner("Job", "train"), {}, (), (), source=source)


def test_what_bind_knows_replaces_what_a_watch_showed() -> None:
    assert decision(DecisionSource.BIND).key() == decision(DecisionSource.WATCH).key()
    assert decision(DecisionSource.BIND).rank() > decision(DecisionSource.WATCH).rank()


def test_the_shorter_interval_of_an_end_replaces_the_longer_one() -> None:
    seen, unseen = End(POD, N1, NO_CONTAINER, 9, 9), End(POD, N1, NO_CONTAINER, 5, 12)
    assert seen.key() == unseen.key()
    assert seen.rank() > unseen.rank()


def test_an_end_that_was_not_seen_is_an_interval() -> None:
    assert End(POD, N1, NO_CONTAINER, 5, 9).is_interval
    assert not End(POD, N1, NO_CONTAINER, 9, 9).is_interval
