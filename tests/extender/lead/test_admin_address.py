"""Where the leading replica's admin REST is, in the annotation of its Lease."""

import msgspec

from extender.lead import admin_address
from extender.lead.admin_address import AdminAddress, LeadingReplica
from extender.state import objects
from extender.state.objects import WatchedLease
from tests.extender.conftest import World
from tests.extender.lead.test_leadership import Candidate, until_watched
from vgpu.adapters.kubernetes import lease
from vgpu.domain import names

ADDRESS = AdminAddress("https://[fd00::1]:9871", "ab" * 32)


def seen(holder: str, by: str) -> WatchedLease:
    """Return a Lease with the annotations that another holder has written."""
    metadata = {"name": "vgpu-extender", "annotations": admin_address.annotations(by, ADDRESS)}
    return objects.lease(msgspec.json.encode({"metadata": metadata, "spec": {"holderIdentity": holder}}))


def test_a_follower_reads_what_the_leader_has_written() -> None:
    assert admin_address.leading(seen("a", "a"), "b") == LeadingReplica("a", is_here=False, address=ADDRESS)
    assert admin_address.leading(seen("a", "a"), "a").is_here


def test_the_address_of_an_earlier_holder_counts_for_nobody_else() -> None:
    """A holder of an earlier version takes the Lease and leaves its annotations as they are."""
    assert admin_address.leading(seen("c", "a"), "b") == LeadingReplica("c", is_here=False)


def test_without_a_holder_nobody_leads() -> None:
    for found in (None, seen("", "a"), WatchedLease("vgpu-extender", "", "", 0)):
        assert admin_address.leading(found, "") == LeadingReplica("", is_here=False)


def test_an_annotation_that_cannot_be_read_says_nothing() -> None:
    for text in ("", "{", "[]", '{"holder": 1}', '{"holder": "a"}'):
        assert admin_address.leading(WatchedLease("l", "a", "", 10, text), "b").address is None


async def test_the_holder_keeps_its_address_in_the_lease_beside_what_others_wrote(world: World) -> None:
    first, second = Candidate(world, "a"), Candidate(world, "b")
    first.leadership._annotations = lambda: admin_address.annotations("a", ADDRESS)
    await first.renew()
    await until_watched(world, "a")
    leases = world.cluster.leases
    assert admin_address.leading(leases.get("vgpu-extender"), "b").address == ADDRESS
    path = lease.path(names.NAMESPACE, "vgpu-extender")
    await world.client.patch(path, {"metadata": {"annotations": {"kept": "yes"}}})
    await first.leadership.resign()
    await second.renew()
    await until_watched(world, "b")
    assert admin_address.leading(leases.get("vgpu-extender"), "c") == LeadingReplica("b", is_here=False)
    second.leadership._annotations = lambda: admin_address.annotations("b", ADDRESS)
    await second.renew()
    found = msgspec.json.decode(await world.client.get(path))["metadata"]["annotations"]
    assert found["kept"] == "yes"
    assert '"holder":"b"' in found[names.ADMIN_ANNOTATION]
