"""Changing the limits of a running allocation."""

import fcntl
from dataclasses import replace
from pathlib import Path

import pytest

from limiter import launch
from tests import leases
from tests.vgpu.cli.conftest import GIB, GPU, OTHER, Make, limits_of
from vgpu.cli.failure import NOT_FOUND, CommandFailed
from vgpu.cli.local import set_limits
from vgpu.cli.local.cards import LocalCards
from vgpu.cli.local.set_limits import CannotSetLimits, LimitsChange
from vgpu.domain.asks.policy import ComputePolicy, MemoryPolicy
from vgpu.domain.cards.device import Card
from vgpu.domain.formats import limits
from vgpu.domain.formats.limits import ANY_GPU, CardLimit, Limits, SpaceMembership

BURST = Limits(
    (CardLimit(GPU, GIB, 20), CardLimit(OTHER, None, 40)), ComputePolicy.BURST, 3, memory_policy=MemoryPolicy.SPILL
)


def test_limits_that_are_not_given_stay() -> None:
    assert set_limits.changed_limits(BURST, LimitsChange()) == BURST
    assert set_limits.changed_limits(BURST, LimitsChange(priority=0)).priority == 0
    more = set_limits.changed_limits(
        BURST, LimitsChange(memory="2GiB", cores=50, policy=ComputePolicy.FIXED, priority=9)
    )
    assert more.cards == (CardLimit(GPU, 2 * GIB, 50), CardLimit(OTHER, 2 * GIB, 50))
    assert (more.compute_policy, more.priority, more.memory_policy) == (ComputePolicy.FIXED, 9, MemoryPolicy.SPILL)


def test_cores_given_later_have_the_default_policy() -> None:
    none = Limits((CardLimit(ANY_GPU, GIB, 0),), ComputePolicy.BURST)
    assert set_limits.changed_limits(none, LimitsChange(cores=30)).compute_policy is ComputePolicy.FIXED
    assert (
        set_limits.changed_limits(none, LimitsChange(cores=30, policy=ComputePolicy.BURST)).compute_policy
        is ComputePolicy.BURST
    )
    assert set_limits.changed_limits(BURST, LimitsChange(cores=30)).compute_policy is ComputePolicy.BURST
    with pytest.raises(ValueError, match=r"--compute-policy.*--gpu-cores"):
        set_limits.changed_limits(none, LimitsChange(policy=ComputePolicy.FIXED))


def test_a_member_of_a_group_in_space_stays_one() -> None:
    former = replace(launch.parse("1GiB", None, "burst"), space=SpaceMembership(bytes(range(16))))
    changed = set_limits.changed_limits(former, LimitsChange(cores=30))
    assert (changed.space, changed.compute_policy) == (former.space, ComputePolicy.BURST)
    with pytest.raises(ValueError, match="--compute-policy: the program is in a group in space"):
        set_limits.changed_limits(former, LimitsChange(policy=ComputePolicy.FIXED))


def test_an_amount_that_cannot_be_read_names_its_option() -> None:
    with pytest.raises(ValueError, match="--gpu-mem: not an amount of memory: '4Qi'"):
        set_limits.changed_limits(BURST, LimitsChange(memory="4Qi"))


def test_the_file_is_rewritten_in_place_and_in_the_other_slot(make: Make) -> None:
    folder = make("ab", wanted=BURST)
    with (folder / "limits").open("rb") as mapped:
        set_limits.set_limits(folder, LimitsChange(cores=70))
        data = mapped.read()
    assert limits.sequence(data) == 2
    assert [card.cores for card in limits.decode(data).cards] == [70, 70]
    torn = bytearray(data)
    torn[64 + 1600 + 100] ^= 255  # damages the newer slot; the older limits are in the other slot
    assert limits.decode(bytes(torn)) == BURST


def test_unreadable_limits_are_not_changed(make: Make) -> None:
    folder = make("ab")
    (folder / "limits").write_bytes(b"torn")
    with pytest.raises(CannotSetLimits, match="ab: 4 bytes"):
        set_limits.set_limits(folder, LimitsChange(cores=70))


def test_an_unambiguous_prefix_of_an_id_is_enough(home: Path, make: Make) -> None:
    first, second, _ = make("ab12"), make("ab34"), make("ab")
    assert set_limits.find_allocation([home], "ab1") == first
    assert set_limits.find_allocation([home, Path("/none")], "ab34") == second
    assert set_limits.find_allocation([home], "ab").name == "ab"
    for wanted, message in (("a", "more than one"), ("x", "no such ID"), ("", "no such ID")):
        with pytest.raises(CommandFailed, match=message) as failed:
            set_limits.find_allocation([home], wanted)
        assert failed.value.code == NOT_FOUND
    assert limits_of(first).cards[0].cores == 30


def test_a_container_can_neither_block_a_change_by_a_lock_nor_by_a_lease(make: Make) -> None:
    folder = make("ab")
    path = folder / "limits"
    with path.open("rb") as mounted:
        fcntl.flock(mounted, fcntl.LOCK_EX)
        set_limits.set_limits(folder, LimitsChange(cores=70))
    assert limits_of(folder).cards[0].cores == 70
    with leases.held(path), pytest.raises(CannotSetLimits, match="ab: a program of the container holds a lease"):
        set_limits.set_limits(folder, LimitsChange(cores=60))


def test_more_memory_than_a_card_has_is_refused(make: Make) -> None:
    folder, found = make("ab", wanted=BURST), LocalCards((Card(GPU, 0, "L4", 2048), Card(OTHER, 1, "A100", 4096)))
    with pytest.raises(ValueError, match=r"--gpu-mem: 4 GiB is more than card 0 \(L4\) has: 2 GiB"):
        set_limits.set_limits(folder, LimitsChange(memory="4Gi"), found)
    assert limits_of(folder) == BURST
    set_limits.set_limits(folder, LimitsChange(memory="2Gi"), found)
    assert limits_of(folder).cards[0].memory_bytes == 2 * GIB
