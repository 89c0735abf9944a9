"""The rows of `vgpu top`."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.vgpu.cli.conftest import GIB, GPU, MS, OTHER, card_bytes
from vgpu.cli.local import top_rows
from vgpu.cli.local.allocations import MachineAllocation
from vgpu.cli.local.top_rows import WaitSample
from vgpu.domain.asks.policy import ComputePolicy
from vgpu.domain.formats import region
from vgpu.domain.formats.limits import ANY_GPU, CardLimit, Limits
from vgpu.domain.formats.region import CardUse
from vgpu.domain.identifiers import CardUuid

LIMITS = Limits((CardLimit(ANY_GPU, 8 * GIB, 30), CardLimit(OTHER, None, 50)), ComputePolicy.BURST, 7)


def cards(*written: bytes) -> tuple[CardUse, ...]:
    content = bytearray(region.new().ljust(region.SIZE, b"\0"))
    content[256 : 256 + 256 * len(written)] = b"".join(written)
    return region.decode(bytes(content)).cards


def allocations_of(*written: bytes, limits: Limits = LIMITS) -> list[MachineAllocation]:
    return [MachineAllocation(Path("/state/allocations/ab12"), "train", limits, cards(*written))]


def test_a_row_has_the_limits_and_the_usage_of_a_card() -> None:
    card = card_bytes(
        used=GIB,
        refusals=2,
        gpu_ns=900,
        delayed=3,
        longest_us=4000,
        second=(100 * MS, 0, 298, 1000),
        ten_seconds=(100 * MS, 0, 305, 10000),
    )
    (row,) = top_rows.make_rows(allocations_of(card), WaitSample(), 200 * MS)
    assert [row.share_1s, row.share_10s] == pytest.approx([0.298, 0.305])
    assert replace(row, share_1s=0, share_10s=0) == top_rows.TopRow(
        "ab12", "train", GPU, GIB, 8 * GIB, "burst", 30, 7, 0, 0, None, 3, 4000, 2
    )


def test_a_group_has_the_sums_of_its_members_on_a_card_and_the_largest_share() -> None:
    held = [
        replace(allocation, folder=Path(f"/state/{number}"), group="team/models" if number < 2 else "")
        for number, allocation in enumerate(allocations_of(card_bytes(used=GIB), card_bytes(OTHER)) * 3)
    ]
    rows = top_rows.make_rows(held, WaitSample(), 200 * MS)
    assert {row.policy for row in rows if row.space_group} == {"space"}
    shares = [replace(row, share_1s=share) for row, share in zip(rows, (0.2, None, 0.3, None, 1.0, None), strict=True)]
    other, own = sorted(top_rows.make_groups(shares), key=lambda group: group.gpu == GPU)
    assert own == top_rows.GroupRow("team/models", GPU, 2, 2 * GIB, 16 * GIB, 60, 0.3, None)
    assert other == top_rows.GroupRow("team/models", OTHER, 2, 0, None, 100, None, None)


def test_without_a_measurement_there_is_no_share() -> None:
    (row,) = top_rows.make_rows(allocations_of(card_bytes(used=GIB)), WaitSample(), 200 * MS)
    assert (row.share_1s, row.share_10s) == (None, None)


def test_each_card_has_its_own_limit() -> None:
    first, second = top_rows.make_rows(allocations_of(card_bytes(), card_bytes(OTHER)), WaitSample(), 0)
    assert (first.limit_bytes, first.cores) == (8 * GIB, 30)
    assert (second.limit_bytes, second.cores) == (None, 50)


def test_a_card_without_a_limit_has_limit_zero() -> None:
    (row,) = top_rows.make_rows(allocations_of(card_bytes(), limits=Limits((CardLimit(OTHER, 1, 1),))), WaitSample(), 0)
    assert (row.limit_bytes, row.cores) == (0, 0)


def test_an_allocation_without_usage_has_a_row() -> None:
    (row,) = top_rows.make_rows(allocations_of(), WaitSample(), 0)
    assert (row.gpu, row.limit_bytes, row.cores, row.used_bytes) == (ANY_GPU, 8 * GIB, 30, 0)


def test_figures_of_a_region_that_cannot_be_read_are_unknown_and_not_zero() -> None:
    (row,) = top_rows.make_rows([replace(allocations_of()[0], cards=None)], WaitSample(), 0)
    assert (row.used_bytes, row.delayed_launches, row.longest_wait_us, row.refusals) == (None, None, None, None)
    assert (row.limit_bytes, row.cores) == (8 * GIB, 30)


@pytest.mark.parametrize(("later", "throttled"), [(400 * MS, 0.3), (100 * MS, 0.0), (99 * MS, 0.0)])
def test_throttled_time_is_that_since_the_last_sample(later: int, throttled: float) -> None:
    before = top_rows.sample(allocations_of(card_bytes(throttled_ns=100 * MS)), 1000 * MS)
    (row,) = top_rows.make_rows(allocations_of(card_bytes(throttled_ns=later)), before, 2000 * MS)
    assert row.throttled == pytest.approx(throttled)


def test_a_card_new_since_the_last_sample_has_no_throttled_time() -> None:
    (row,) = top_rows.make_rows(allocations_of(card_bytes(OTHER)), top_rows.sample(allocations_of(card_bytes()), 1), 2)
    assert row.throttled is None


def rank(number: int, job: int, gpu: str, cores: int, policy: ComputePolicy = ComputePolicy.BURST) -> MachineAllocation:
    limits = Limits((CardLimit(CardUuid(gpu), GIB, cores),), policy, job=bytes([job] * 16))
    return MachineAllocation(Path(f"/state/r{number}"), f"rank-{number}", limits, cards(card_bytes(gpu)))


def test_a_job_has_its_cards_and_the_terms_that_count_for_all() -> None:
    held = [
        rank(0, 1, GPU, 50), rank(1, 1, OTHER, 30, ComputePolicy.FIXED), rank(2, 2, GPU, 10),
        *allocations_of(card_bytes()),
    ]  # fmt: skip
    rows = top_rows.make_rows(held, WaitSample(), 200 * MS)
    assert [row.job for row in rows] == ["01010101", "01010101", "02020202", ""]
    shares = [replace(row, share_1s=share) for row, share in zip(rows, (0.2, 0.3, 0.9, None), strict=True)]
    (job,) = top_rows.make_jobs(shares)  # the other one has one container here
    assert job == top_rows.JobRow(
        "01010101", ("rank-0", "rank-1"), (GPU, OTHER), 30, ComputePolicy.FIXED, 0.2, 0.3, None
    )


def test_a_job_whose_cards_were_not_used_yet_has_none() -> None:
    held = [replace(rank(number, 1, GPU, 50), cards=()) for number in range(2)]
    (job,) = top_rows.make_jobs(top_rows.make_rows(held, WaitSample(), 200 * MS))
    assert (job.gpus, job.least_1s, job.policy) == ((), None, ComputePolicy.BURST)
