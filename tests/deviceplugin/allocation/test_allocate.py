"""Allocate is answered again where its first answer was lost with the process that gave it."""

from tests.deviceplugin.plugin_parts import IDS, PluginParts
from tests.vgpu.node.builders import slices
from vgpu.domain import names
from vgpu.node.containers.allocations import Allocation


async def allocate(parts: PluginParts, ids: frozenset[str] = IDS, first_sent: float | None = None) -> Allocation:
    """Answer Allocate, and return the record that the answer's mounts lead to."""
    answer = parts.allocator.allocate(names.SLICE, ids, first_sent)
    hosts = {part for mount in answer.mounts for part in mount.host_path.parts}
    (found,) = (allocation for allocation in parts.allocations.all() if allocation.id in hosts)
    return found


async def test_a_call_that_is_sent_again_gets_the_directory_that_its_first_answer_named(parts: PluginParts) -> None:
    parts.now = 10
    first = await allocate(parts)
    assert await allocate(parts, first_sent=10) == first
    assert parts.allocations.all() == (first,)


async def test_a_call_that_made_no_record_the_first_time_makes_one(parts: PluginParts) -> None:
    """The records of the same devices are those of a pod that has ended."""
    parts.now = 10
    earlier = await allocate(parts)
    other = await allocate(parts, slices(1, 0))
    parts.now = 20
    made = await allocate(parts, first_sent=15)
    assert made.id not in {earlier.id, other.id}


async def test_the_same_devices_in_a_new_call_get_a_directory_of_their_own(parts: PluginParts) -> None:
    assert (await allocate(parts)).id != (await allocate(parts)).id
