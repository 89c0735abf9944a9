"""Events for tests: the pod `p1` of the Deployment web, with a quarter of a card by default."""

from collections.abc import Mapping

from extender.history.recording.events import (
    CardShare,
    ContainerShare,
    Decision,
    DecisionSource,
    End,
    PodName,
    PodOwner,
)
from vgpu.domain.identifiers import NO_CONTAINER, CardUuid, ContainerName, Namespace, NodeName, PodUid

HOUR = 3_600_000
MONDAY = 20_000 * 24 * HOUR  # a midnight


def pod(number: int = 1, namespace: str = "team") -> PodName:
    return PodName(PodUid(f"uid-{number}"), Namespace(namespace), f"p{number}")


def card(gpu: str = "GPU-a", memory_mib: int = 4096, cores: int = 0, *, whole: bool = False) -> CardShare:
    return CardShare(CardUuid(gpu), 0, "L4", 16384, memory_mib, cores, whole)


def decision(
    number: int = 1,
    at_ms: int = MONDAY,
    *cards: CardShare,
    namespace: str = "team",
    owner: str = "web",
    labels: Mapping[str, str] | None = None,
    waited_ms: int = 0,
    source: DecisionSource = DecisionSource.BIND,
) -> Decision:
    cards = cards or (card(),)
    return Decision(
        pod(number, namespace),
        NodeName("n1"),
        at_ms,
        at_ms - waited_ms,
        PodOwner("Deployment", owner),
        labels or {},
        tuple(
            ContainerShare(ContainerName("main"), share.gpu, share.memory_mib, share.cores or None, share.whole)
            for share in cards
        ),
        cards,
        {"CardInsufficientMemory": 2},
        source,
    )


def end(number: int = 1, at_ms: int = MONDAY + HOUR, after_ms: int | None = None, namespace: str = "team") -> End:
    return End(
        pod(number, namespace),
        NodeName("n1"),
        NO_CONTAINER,
        at_ms if after_ms is None else after_ms,
        at_ms,
        0,
        "Succeeded",
    )
