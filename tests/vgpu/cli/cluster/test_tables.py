"""Amounts in lists of the cluster."""

import pytest

from vgpu.cli.cluster import tables


@pytest.mark.parametrize(
    ("mib", "written"),
    [
        (0, "0"), (512, "512Mi"), (81_920, "80Gi"), (81_921, "80.0Gi"), (81_919, "80.0Gi"), (81_559, "79.6Gi"),
        (1 << 20, "1Ti"), ((1 << 20) + 1, "1.0Ti"), ((1 << 20) - 1, "1024.0Gi"), (1 << 24, "16Ti"),
    ],
)  # fmt: skip
def test_a_whole_number_of_a_unit_is_exact(mib: int, written: str) -> None:
    assert tables.size(mib) == written
    assert len(written) <= 8


def test_a_card_that_the_node_does_not_report_has_no_index() -> None:
    grant = {"container": "main", "memoryMiB": 512, "cores": 0, "whole": False, "usedMiB": 64, "usedCores": 3}
    listed = [grant | {"index": -1, "uuid": "GPU-old"}, grant | {"index": 1, "uuid": "GPU-b"}]
    assert tables.cards(listed) == "?: 512Mi, 1: 512Mi"
    assert tables.used(listed) == "?: 64Mi 3%, 1: 64Mi 3%"
