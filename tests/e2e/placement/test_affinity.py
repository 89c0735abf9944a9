"""Pods beside each other on one card, and apart, on a real scheduler."""

from typing import Any

import pytest

from tests.e2e.pod_namespace import PodNamespace, pod
from vgpu.domain import names

pytestmark = pytest.mark.e2e

BESIDE, APART = names.GPU_AFFINITY, names.GPU_ANTI_AFFINITY


def labelled(name: str, kind: str, **annotations: str) -> dict[str, Any]:
    """A pod of 1 GiB with the label `class`."""
    named = {{"beside": BESIDE, "apart": APART}[short]: value for short, value in annotations.items()}
    made = pod(name, annotations=named, gpu_mem=1024)
    made["metadata"]["labels"] = {"class": kind}
    return made


def cards(namespace: PodNamespace, *found: str) -> list[str]:
    """The card of each pod."""
    return [next(iter(namespace.assignment(name).gpus())) for name in found]


def test_a_pod_waits_for_the_pod_that_it_must_be_beside_and_starts_when_that_one_is_bound(
    namespace: PodNamespace,
) -> None:
    namespace.create(labelled("batch", "batch", beside="class=online"))
    namespace.until(
        lambda: any("CardAffinity" in event["message"] for event in namespace.events("batch")),
        "an Event with the reason",
    )
    namespace.create(labelled("other", "other"))
    namespace.create(labelled("online", "online"))
    namespace.running("batch", "online", "other")
    assert len(set(cards(namespace, "batch", "online"))) == 1


def test_pods_that_are_apart_never_share_a_card_even_if_created_at_once(namespace: PodNamespace) -> None:
    online = [f"online-{n}" for n in range(6)]
    for name in online:
        namespace.create(labelled(name, "online", apart="class=online"))
    namespace.running(*online)
    assert len(set(cards(namespace, *online))) == 6
    namespace.create(labelled("batch", "batch", beside="class=online"))
    namespace.running("batch")
    assert set(cards(namespace, "batch")) < set(cards(namespace, *online))
    everywhere = labelled("late", "online")  # the others keep it off, although it asks for nothing itself
    namespace.create(everywhere)
    namespace.running("late")
    assert not set(cards(namespace, "late")) & set(cards(namespace, *online))
