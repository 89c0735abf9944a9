"""A group in space is one tenant, whose clients hold its turns together: group_turn.h as a part of the schedule."""

import ctypes
import functools
from typing import Any

import pytest

from limiter.arbitration import ANY
from tests.arbiter.simulation import (
    HANDOVER,
    MS,
    SECOND,
    Demand,
    FalseClient,
    IntermittentLoad,
    Process,
    Tenant,
    World,
    demand,
)

FROM_GROUP = HANDOVER + MS // 4  # from a group to another tenant, as measured


def group_demand(cores: int, priority: int = 0) -> Demand:
    """What a group asks whose members' cores come to this."""
    asked = demand(cores, "burst", priority)
    asked.is_group = True
    return asked


class GroupTenant(Tenant):
    """A group: its work drains with that of the last member."""

    def set_busy_until(self, drained: int) -> None:
        self.busy_until = max(self.busy_until, drained + MS)


class SharedCard(World):
    """A card on which members of one group run at the same moment, and everything else one after the other."""

    def __init__(self, library: ctypes.CDLL) -> None:
        super().__init__(library)
        self.ends: dict[Process, int] = {}
        self.began = 0  # when the last tenant on the card began
        self.overlaps = 0  # kernels that ran beside one of another member

    def group(self, cores: int, priority: int = 0) -> Tenant:
        """A group."""
        tenant = self.tenant(group_demand(cores, priority))
        self.tenants[-1] = GroupTenant(tenant.index, tenant.demand)
        return self.tenants[-1]

    def launch(self, process: Process, ns: int) -> int:
        """Queues a kernel behind the process's own, and behind all of other tenants; `used` counts the card's time."""
        if not process.tenant.demand.is_group or self.last is None or self.last.tenant is not process.tenant:
            begin = max(self.now, self.free_at + self.handover_to(process))
        else:
            begin = max(self.now, self.ends.get(process, 0), self.began)
        if self.last is None or self.last.tenant is not process.tenant:
            self.began = begin
        self.overlaps += begin < self.free_at
        process.tenant.used += max(0, begin + ns - max(self.free_at, begin))
        self.ends[process] = begin + ns
        self.free_at = max(self.free_at, begin + ns)
        self.last = process
        return begin + ns

    def handover_to(self, process: Process) -> int:
        """How long the card takes to change to it."""
        if self.last is None or self.last is process:
            return 0
        return FROM_GROUP if self.last.tenant.demand.is_group else HANDOVER

    def publish_pages(self) -> None:
        """Publishes, after it was checked that one tenant at most has a turn."""
        pages = {client: self.library.schedule_page(self.schedule, client).contents for client in self.processes}
        living = {client for client, process in self.processes.items() if process.is_alive}
        holders = {
            self.processes[client].tenant.index
            for client, page in pages.items()
            if client in living and page.contended and page.turn
        }
        assert len(holders) <= 1
        super().publish_pages()


@pytest.fixture
def card(pure: ctypes.CDLL) -> Any:
    with SharedCard(pure) as world:
        yield world


def has_turn(card: SharedCard, process: Process) -> bool:
    return bool(card.library.schedule_page(card.schedule, process.client).contents.turn)


@pytest.mark.heavy
def test_a_group_gets_the_sum_of_its_members_beside_a_fixed_share_and_a_trainer(card: SharedCard) -> None:
    group = card.group(30)
    for _ in range(3):
        Process(card, group)
    Process(card, card.tenant(demand(30)))
    Process(card, card.tenant(demand(0, "best-effort")), 2 * MS)
    card.run(SECOND)
    together, fixed, trainer = card.shares(5 * SECOND)
    assert together >= 30
    assert abs(fixed - 30) <= 1.5
    assert trainer > 0
    assert together + fixed + trainer > 90


@pytest.mark.heavy
def test_a_groups_share_is_that_of_one_tenant_however_many_members_it_has(card: SharedCard) -> None:
    group, other = card.group(40), card.tenant(demand(40, "burst"))
    for _ in range(6):
        Process(card, group)
    Process(card, other)
    card.run(SECOND)
    together, alone = card.shares(4 * SECOND)
    assert abs(together - alone) < 6


def test_members_run_at_the_same_moment_and_each_gets_the_groups_time(card: SharedCard) -> None:
    group = card.group(50)
    members = [Process(card, group) for _ in range(3)]
    Process(card, card.tenant(demand(50, "burst")))
    card.run(SECOND)
    launched = dict.fromkeys(members, 0)
    for member in members:
        member.launched = functools.partial(_count, launched, member)  # type: ignore[method-assign]
    share, _ = card.shares(3 * SECOND)
    assert card.overlaps > 100
    for count in launched.values():
        assert abs(100 * count * (MS // 2) / (3 * SECOND) - share) < 4


def _count(launched: dict[Process, int], member: Process, _done_at: int) -> None:
    launched[member] += 1


def test_a_group_that_is_alone_on_the_card_runs_free(card: SharedCard) -> None:
    group = card.group(20)
    members = [Process(card, group) for _ in range(3)]
    card.run(SECOND)
    assert not any(member.page.contended for member in members)
    (share,) = card.shares(SECOND)
    assert share > 99


def test_a_member_that_comes_during_the_groups_turn_gets_a_part_of_it_at_once(card: SharedCard) -> None:
    group = card.group(50)
    first, late = Process(card, group, MS // 4), IntermittentLoad(card, group, MS // 4)
    late.on = False
    Process(card, card.tenant(demand(50, "burst")))
    card.run(SECOND)
    while not has_turn(card, first):
        card.run(MS // 10)
    late.switch(on=True)
    card.run(MS // 2)
    assert has_turn(card, first)
    assert has_turn(card, late)
    assert late.page.turn != first.page.turn
    assert late.page.budget_ns == ANY


class Silent(Process):
    """A client that does nothing by itself."""

    def step(self) -> None:
        pass


def let_members_hold_the_turn(card: SharedCard, members: list[Silent], neighbour: Silent) -> None:
    """Both have a part of it, and the neighbour waits."""
    neighbour.want()
    for process in (*members, neighbour):
        process.want()
    while not all(has_turn(card, member) for member in members):
        card.run(MS // 10)
    for process in (members[0], neighbour):
        process.tenant.busy_until = card.now + 100 * MS
    card.run(MS)


def test_the_turn_ends_when_the_last_part_has_drained(card: SharedCard) -> None:
    group, other = card.group(50), card.tenant(demand(50, "burst"))
    members, neighbour = [Silent(card, group), Silent(card, group)], Silent(card, other)
    let_members_hold_the_turn(card, members, neighbour)
    assert [has_turn(card, process) for process in (*members, neighbour)] == [True, True, False]
    parts = [member.page.turn for member in members]
    card.run(30 * MS)
    assert [member.page.yield_turn for member in members] == parts
    members[0].send_done(parts[0], 0)
    card.run(MS)
    assert not has_turn(card, neighbour)  # the other member has said nothing, and the region that it works
    members[1].send_done(parts[1], 5 * MS)
    card.run(4 * MS)
    assert not has_turn(card, neighbour)
    card.run(2 * MS)
    assert has_turn(card, neighbour)


def test_a_part_that_drains_earlier_than_announced_ends_the_turn_earlier(card: SharedCard) -> None:
    group, other = card.group(50), card.tenant(demand(50, "burst"))
    members, neighbour = [Silent(card, group), Silent(card, group)], Silent(card, other)
    let_members_hold_the_turn(card, members, neighbour)
    parts = [member.page.turn for member in members]
    for member, part in zip(members, parts, strict=True):
        member.send_done(part, 50 * MS)
    members[0].send_done(parts[0], 0)
    card.run(MS)
    assert not has_turn(card, neighbour)
    members[1].send_done(parts[1], 0)
    card.run(MS)
    assert has_turn(card, neighbour)


def test_a_killed_member_leaves_the_turn_to_the_others_and_the_last_one_ends_it(card: SharedCard) -> None:
    group = card.group(50)
    first, second = Process(card, group), Process(card, group)
    neighbour = Process(card, card.tenant(demand(50, "burst")))
    card.run(SECOND)
    while not (has_turn(card, first) and has_turn(card, second)):
        card.run(MS // 10)
    first.die()
    assert has_turn(card, second)
    second.die()
    card.run(5 * MS)
    assert has_turn(card, neighbour) or not neighbour.page.contended
    _, rest = card.shares(3 * SECOND)
    assert rest > 95


@pytest.mark.parametrize("lease", [ANY, 0])
def test_a_member_that_never_gives_its_part_back_does_not_keep_the_card(card: SharedCard, lease: int) -> None:
    group = card.group(30)
    Process(card, group)
    FalseClient(card, group, None, lease=lease)
    Process(card, card.tenant(demand(40)))
    card.run(SECOND)
    _, fixed = card.shares(4 * SECOND)
    assert fixed > 37


def test_a_group_that_is_idle_leaves_the_card_to_others(card: SharedCard) -> None:
    group = card.group(60)
    members = [IntermittentLoad(card, group) for _ in range(2)]
    Process(card, card.tenant(demand(40, "burst")))
    card.run(SECOND)
    for member in members:
        member.switch(on=False)
    card.run(100 * MS)
    idle, busy = card.shares(SECOND)
    assert idle < 1
    assert busy > 95
