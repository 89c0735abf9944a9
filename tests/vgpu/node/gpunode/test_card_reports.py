"""Pods that hold an unhealthy card are reported, and no others."""

from dataclasses import replace

from tests.vgpu.node.builders import bound, gpu, uuid
from vgpu.domain.identifiers import ContainerName, Namespace
from vgpu.node.containers.card_holders import CardHolder
from vgpu.node.gpunode import card_reports

LOST, FINE = uuid(0), uuid(1)
HIT, BESIDE, ENDED = bound("hit"), bound("beside"), replace(bound("ended"), is_terminal=True)
HELD = [
    CardHolder(HIT.uid, ContainerName("main"), LOST),
    CardHolder(BESIDE.uid, ContainerName("main"), FINE),
    CardHolder(ENDED.uid, ContainerName("main"), LOST),
]


def test_only_the_pods_of_the_unhealthy_card_are_reported() -> None:
    (report,) = card_reports.reports({LOST: "Xid79"}, [gpu(0), gpu(1)], HELD, [HIT, BESIDE, ENDED])
    assert (report["podUID"], report["pod"], report["reason"], report["evict"]) == (
        HIT.uid,
        "default/hit",
        "CardUnhealthy",
        False,
    )
    assert report["message"].startswith(f"card 0 ({LOST}) is unhealthy: Xid79 (the GPU has fallen off the bus). ")


def test_the_pods_of_a_card_that_the_node_does_not_have_any_more_are_reported() -> None:
    (report,) = card_reports.reports({}, [gpu(1)], HELD, [HIT, BESIDE, ENDED])
    assert report["pod"] == "default/hit"
    assert report["message"].startswith(f"card {LOST} is lost: ")
    assert "delete the pod" in report["message"]


def test_a_crowd_of_pods_and_cards_stays_within_the_schema() -> None:
    pods = [bound(f"p{number}") for number in range(40)]
    cards = [uuid(number) for number in range(64)]
    held = [CardHolder(pod.uid, ContainerName("main"), card) for pod in pods for card in cards]
    found = card_reports.reports(dict.fromkeys(cards, "Xid79"), [gpu(0)], held, pods)
    assert len(found) == card_reports.MAX_REPORTED
    assert all(len(report["message"]) <= 1024 for report in found)


def test_a_crowd_of_one_namespace_hides_no_pod_of_another() -> None:
    crowd = [replace(bound(f"crowd{number}"), namespace=Namespace("crowd")) for number in range(40)]
    last = replace(bound("last"), namespace=Namespace("quiet"))
    held = [CardHolder(pod.uid, ContainerName("main"), LOST) for pod in (*crowd, last)]
    found = card_reports.reports({LOST: "Xid79"}, [gpu(0)], held, [*crowd, last])
    assert len(found) == card_reports.MAX_REPORTED
    assert "quiet/last" in {report["pod"] for report in found}
