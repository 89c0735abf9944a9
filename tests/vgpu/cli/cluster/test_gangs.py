"""`vgpu describe pod` of a member of a gang: the cards of all of its pods together."""

from tests.vgpu.cli.cluster import canned
from vgpu.cli.cluster import describe


def test_the_pods_of_a_gang_are_shown_with_their_cards() -> None:
    ranks = [
        canned.pod(f"rank-{n}", "Running", node="node-1", gang="train", gpus=[canned.grant(n, 8192, 30)])
        for n in range(2)
    ]
    waiting = canned.pod("rank-2", "Pending", gang="train")
    text = describe.pod(ranks[0], (), [*ranks, waiting])
    found = text[text.index("Gang train:") :].splitlines()
    assert found[1].split() == ["POD", "STATUS", "NODE", "GPUS"]
    assert [line.split() for line in found[2:5]] == [
        ["rank-0", "Running", "node-1", "0:", "8Gi", "30%"],
        ["rank-1", "Running", "node-1", "1:", "8Gi", "30%"],
        ["rank-2", "Pending"],
    ]


def test_a_pod_in_no_gang_and_the_row_of_an_older_server_have_no_such_section() -> None:
    row = canned.pod("train", "Running")
    assert "Gang" not in describe.pod(row)
    del row["gang"]
    assert "Gang" not in describe.pod(row)
