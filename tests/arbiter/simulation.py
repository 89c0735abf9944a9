"""A simulation, in virtual time, of a card, its schedule and the processes that use it.

The card executes launches in their order. A handover between processes costs 0.2 ms, as measured. A process reads its
page 50 us after the arbiter has written it. A process behaves like the limiter: it sends WANT, launches within the
turn's budget and depth, sends DONE, and sends the next WANT at once.
"""

import ctypes
import functools
import heapq
import itertools
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Self

from limiter.arbitration import ANY, ClientPage
from vgpu.domain.asks.policy import ComputePolicy

US: Final = 1_000
MS: Final = 1_000_000
SECOND: Final = 1000 * MS
START: Final = 1000 * SECOND
HANDOVER: Final = 200 * US
PAGE_DELAY: Final = 50 * US
LAUNCH_INTERVAL: Final = 5 * US
GRACE: Final = MS
IDLE_BEFORE_ARRIVAL: Final = 400 * US
YIELD_CHECK_LEAD: Final = 200 * US
BURST_CAP: Final = 10 * MS
DEBT_MAX: Final = 60 * SECOND
LONG_WAIT: Final = 50 * MS
U64 = ctypes.c_uint64


class Demand(ctypes.Structure):
    _fields_ = (
        ("policy", ctypes.c_int),
        ("guarantee", ctypes.c_uint32),
        ("weight", ctypes.c_uint32),
        ("priority", ctypes.c_uint32),
        ("is_group", ctypes.c_bool),
    )


def demand(cores: int = 0, policy: str = "fixed", priority: int = 0) -> Demand:
    """The demand of a container with limits of `cores` percent; 0 means no share, with the policy burst."""
    kind = "burst" if policy == "fixed" and not cores else policy
    guarantee = 0 if kind == "best-effort" else cores
    return Demand(tuple(ComputePolicy).index(ComputePolicy(kind)), guarantee, cores or 1, priority, is_group=False)


def declare(library: ctypes.CDLL) -> ctypes.CDLL:
    library.schedule_open.restype = ctypes.c_void_p
    library.schedule_page.restype = ctypes.POINTER(ClientPage)
    for name in ("schedule_run", "schedule_held_ns"):
        getattr(library, name).restype = U64
    for name in ("schedule_needs_heartbeat", "schedule_is_empty"):
        getattr(library, name).restype = ctypes.c_bool
    return library


@dataclass
class Tenant:
    index: int
    demand: Demand
    used: int = 0
    busy_until: int = 0
    awaited_until: int = 0
    is_waiting: bool = False
    clock_error: int = 0
    processes: list["Process"] = field(default_factory=list)

    def set_busy_until(self, drained: int) -> None:
        self.busy_until = max(0, drained + GRACE + self.clock_error)

    def note_drained(self) -> None:
        self.awaited_until = 0


class World:
    def __init__(self, library: ctypes.CDLL, high: int = 90, low: int = 70) -> None:
        self.library = library
        self.schedule = ctypes.c_void_p(library.schedule_open(high, low))
        self.now = START
        self.events: list[tuple[int, int, Callable[[], None]]] = []
        self.numbers = itertools.count()
        self.tenants: list[Tenant] = []
        self.processes: dict[int, Process] = {}
        self.free_at = START
        self.last: Process | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.library.schedule_close(self.schedule)

    def at(self, time: int, action: Callable[[], None]) -> None:
        heapq.heappush(self.events, (max(time, self.now), next(self.numbers), action))

    def tenant(self, demand: Demand) -> Tenant:
        index = self.library.schedule_add(self.schedule, ctypes.byref(demand), U64(self.now))
        assert index >= 0
        self.tenants.append(Tenant(index, demand))
        return self.tenants[-1]

    def remove(self, tenant: Tenant) -> None:
        self.library.schedule_remove(self.schedule, tenant.index)
        self.tenants.remove(tenant)

    def change(self, tenant: Tenant, demand: Demand) -> None:
        tenant.demand = demand
        self.library.schedule_set_demand(self.schedule, tenant.index, ctypes.byref(demand), U64(self.now))
        self.run_schedule()

    def run_schedule(self) -> None:
        """Runs the schedule, as the arbiter does after an event and at the time that `schedule_run` returned."""
        index = self.library.schedule_run_tenant_to_check(self.schedule, U64(self.now))
        if index >= 0:
            tenant = next(tenant for tenant in self.tenants if tenant.index == index)
            note = self.library.schedule_run_note_use
            awaited_until = U64(tenant.awaited_until)
            note(self.schedule, U64(tenant.busy_until), awaited_until, tenant.is_waiting, U64(self.now))
        due = self.library.schedule_run(self.schedule, U64(self.now))
        if self.library.schedule_needs_heartbeat(self.schedule):
            due = min(due, self.now + 20 * MS)
        self.publish_pages()
        if due != ANY:
            self.due = due
            self.at(due, lambda: self.run_schedule_if_due(due))

    def run_schedule_if_due(self, due: int) -> None:
        """Does nothing if a later call of `run_schedule` has replaced this one."""
        if self.due == due:
            self.run_schedule()

    def publish_pages(self) -> None:
        while (client := self.library.clients_next_changed(self.schedule)) >= 0:
            page = ClientPage.from_buffer_copy(self.library.schedule_page(self.schedule, client).contents)
            process = self.processes[client]
            self.at(self.now + PAGE_DELAY, functools.partial(process.read_page, page))

    def run(self, ns: int) -> None:
        end = self.now + ns
        self.run_schedule()
        while self.events and self.events[0][0] <= end:
            self.now, _, action = heapq.heappop(self.events)
            action()
        self.now = end

    def stall(self, ns: int) -> None:
        """Stops the processes and the arbiter for `ns`; the card goes on."""
        end = self.now + ns
        self.events = [(max(time, end), number, action) for time, number, action in self.events]
        heapq.heapify(self.events)
        self.now = end

    def launch(self, process: "Process", ns: int) -> int:
        """Queues work on the card; returns the time of its end."""
        handover = HANDOVER if self.last not in (None, process) else 0
        begin = max(self.now, self.free_at + handover)
        self.free_at = begin + ns
        self.last = process
        process.tenant.used += ns
        return self.free_at

    def shares(self, ns: int) -> list[float]:
        """Runs for `ns`; returns the percentage of the card's time that each tenant used."""
        before = [tenant.used for tenant in self.tenants]
        self.run(ns)
        return [100 * (tenant.used - was) / ns for tenant, was in zip(self.tenants, before, strict=True)]


class Process:
    """A process that launches kernels of `kernel` ns continuously, in turns if the card is contended."""

    def __init__(self, world: World, tenant: Tenant, kernel: int = MS // 2) -> None:
        self.world, self.tenant, self.kernel = world, tenant, kernel
        self.client = world.library.schedule_join(world.schedule, tenant.index, ctypes.c_bool(False))
        assert self.client >= 0
        world.processes[self.client] = self
        tenant.processes.append(self)
        self.page = ClientPage()
        self.turn = self.ended = 0
        self.spent = self.begun_at = self.done_at = self.until = 0
        self.unmeasured = 0  # GPU time of an ended turn, which is charged when its work has drained
        self.free_at_error = 0  # when the turn began on the card, minus the time in the page
        self.drained = START  # when its launched work drains, by its own estimate
        self.tokens, self.refilled_at = BURST_CAP, world.now
        self.counted = self.most_kept = 0
        self.kept_tokens = 0  # tokens beyond the burst cap that were earned during a long wait for a turn
        self.wanted_at: int | None = None
        self.waits: list[int] = []
        self.is_alive = True
        self.suitable_turn = self.step_ns = 0
        self.step_at = 0
        self.soon(world.now + 2 * PAGE_DELAY)

    # Subclasses override these two.
    def has_work(self) -> bool:
        return True

    def launched(self, done_at: int) -> None:
        pass

    def soon(self, time: int) -> None:
        self.step_at = time
        self.world.at(time, lambda: self.step() if self.step_at == time else None)

    def read_page(self, page: ClientPage) -> None:
        self.page = page
        if self.is_alive:
            self.step()

    def die(self) -> None:
        self.is_alive = False
        self.world.library.schedule_leave(self.world.schedule, self.client, U64(self.world.now))
        self.world.run_schedule()

    def refill(self) -> int:
        """Refills the token bucket, which only a fixed share has, and returns its tokens."""
        if self.tenant.demand.policy != 0:
            return DEBT_MAX
        earned = (self.world.now - self.refilled_at) * self.tenant.demand.guarantee // 100
        self.keep_earned()
        is_charged = self.spent == self.unmeasured == 0
        most = BURST_CAP + self.kept_tokens if is_charged else ANY
        self.tokens, self.refilled_at = min(most, self.tokens + earned), self.world.now
        return self.tokens

    def keep_earned(self) -> None:
        """Keeps the tokens of a long wait for a turn, and of the waits after it until they are used."""
        waited = self.world.now - (self.wanted_at or self.world.now)
        earned = waited * self.tenant.demand.guarantee // 100
        self.most_kept = max(self.most_kept if self.kept_tokens else 0, earned if waited >= LONG_WAIT else 0)
        self.kept_tokens = min(self.kept_tokens + max(0, earned - self.counted), self.most_kept)
        self.counted = earned

    def budget(self) -> int:
        own = 50 * MS * self.tenant.demand.guarantee // 100 if self.tenant.demand.policy == 0 else ANY
        page = self.page.budget_ns if self.page.contended else ANY
        most = 10 * MS if self.tenant.demand.policy == 0 else ANY
        return min(own, page, most)

    def update_progress(self) -> None:
        """Updates the estimated drain time: it is exact once the turn's first launch has ended."""
        if self.begun_at > self.world.now:
            self.drained = max(self.drained, self.world.now + self.spent - self.kernel)
            self.tenant.set_busy_until(self.drained)
        elif self.begun_at:
            self.drained = self.done_at

    def has_turn(self) -> bool:
        if not self.page.contended:
            return True
        if self.turn:
            return True
        if not self.page.turn or self.page.turn == self.ended:
            return False
        if self.page.turn == self.page.yield_turn:
            self.send_done(self.page.turn, 0)
            self.want()
            return False
        self.tokens -= self.spent  # of launches before the card was contended
        self.turn, self.spent, self.begun_at = self.page.turn, 0, 0
        self.until = self.page.end_by if self.page.end_by > self.world.now else 0
        self.drained = max(self.drained, self.page.free_at)
        return True

    def is_over(self) -> bool:
        is_taken = self.turn and (self.page.turn != self.turn or self.page.yield_turn == self.turn)
        near = max(self.drained, self.world.now) + min(self.kernel * 4 // 5, IDLE_BEFORE_ARRIVAL)
        return bool(is_taken) or 0 < self.until < near or (self.spent > 0 and self.spent + self.kernel > self.budget())

    def want(self) -> None:
        self.wanted_at = self.wanted_at or self.world.now
        want = self.world.library.schedule_want
        want(self.world.schedule, self.client, U64(self.suitable_turn), U64(self.step_ns), U64(self.world.now))
        self.world.run_schedule()
        self.asks_at = self.world.now + 20 * MS
        self.world.at(self.asks_at, self.ask_again)

    def ask_again(self) -> None:
        if self.is_alive and self.wanted_at is not None and self.world.now >= self.asks_at:
            self.want()

    def send_done(self, turn: int, rest: int, *, is_awaited: bool = False) -> None:
        self.ended = turn
        note = self.world.library.schedule_run_note_busy_until
        note(self.world.schedule, self.tenant.index, U64(self.tenant.busy_until))
        done = self.world.library.schedule_done
        done(self.world.schedule, self.client, ctypes.c_uint32(turn), U64(rest), is_awaited, U64(self.world.now))

    def measure(self) -> None:
        """Charges the ended turn: its work has drained."""
        self.tokens, self.unmeasured = self.refill() - self.unmeasured, 0
        self.kept_tokens = min(self.kept_tokens, max(0, self.tokens - BURST_CAP))

    def end_turn(self) -> None:
        self.unmeasured += self.spent
        is_covered = self.refill() > self.unmeasured
        self.update_progress()
        rest = max(0, self.drained - self.world.now)
        turn, self.turn, self.ended, self.spent = self.turn, 0, self.turn or self.ended, 0
        if turn:
            self.send_done(turn, rest)
        if self.has_work() and is_covered and self.page.contended:
            self.want()
        elif turn:
            self.world.run_schedule()

    def step(self) -> None:
        if not self.is_alive or not self.has_work():
            return
        if self.spent and self.is_over():
            self.end_turn()
        if self.unmeasured and self.done_at <= self.world.now:
            self.measure()
        missing = 0 if self.spent else self.unmeasured - self.refill()
        if self.spent == 0 and missing >= 0:
            self.soon(self.world.now + missing * 100 // self.tenant.demand.guarantee + US)
        elif not self.has_turn():
            if self.wanted_at is None:
                self.want()
        else:
            self.launch()

    def launch(self) -> None:
        self.update_progress()
        in_flight = max(0, self.drained - self.world.now)
        depth = self.page.depth_ns if self.page.contended else 5 * MS
        if self.turn and (self.page.turn != self.turn or self.page.yield_turn == self.turn):
            self.end_turn()
            return
        if self.unmeasured:  # the former turn is measured first
            self.soon(self.done_at)
            return
        if in_flight > depth:
            self.soon(self.drained - (max(depth, YIELD_CHECK_LEAD) if in_flight > YIELD_CHECK_LEAD else depth))
            return
        if self.wanted_at is not None:
            self.waits.append(self.world.now - self.wanted_at)
            self.counted = 0
            self.wanted_at = None
        done_at = self.done_at = self.world.launch(self, self.kernel)
        if self.spent == 0:
            self.begun_at = done_at
            self.free_at_error = done_at - self.kernel - max(self.page.free_at, self.world.now)
        self.drained = max(self.drained, self.world.now) + self.kernel
        self.tenant.set_busy_until(self.drained)
        self.spent += self.kernel
        self.launched(done_at)
        self.soon(self.world.now + LAUNCH_INTERVAL)


class Inference(Process):
    """Serves a request of two kernels every `period` ns, delayed by up to `jitter`, one request at a time."""

    def __init__(
        self, world: World, tenant: Tenant, kernel: int = 450 * US, period: int = 10 * MS, jitter: int = 0
    ) -> None:
        self.period, self.jitter, self.left, self.requested_at = period, jitter, 0, 0
        self.random = random.Random(1)
        self.latencies: list[int] = []
        super().__init__(world, tenant, kernel)
        world.at(world.now + MS, self.request)

    def has_work(self) -> bool:
        return self.left > 0

    def request(self) -> None:
        if not self.is_alive:
            return
        self.world.at(self.world.now + self.period, self.request)
        self.world.at(self.world.now + self.random.randint(0, self.jitter), self.begin)

    def begin(self) -> None:
        if self.left == 0:
            self.left, self.requested_at = 2, self.world.now
            self.step()

    def launched(self, done_at: int) -> None:
        self.left -= 1
        if self.left == 0:
            self.latencies.append(done_at - self.requested_at)


class IntermittentLoad(Process):
    """A process that launches continuously while `on` is true."""

    on = True

    def has_work(self) -> bool:
        return self.on

    def switch(self, *, on: bool) -> None:
        self.on, self.wanted_at = on, None
        if on:
            self.soon(self.world.now)


class WaitingForEach(Process):
    """A process that waits for each kernel, so that it sends DONE only when it launches the next one, after `GAP`."""

    GAP = 20 * US
    waits_until = 0

    def has_work(self) -> bool:
        return self.world.now >= self.waits_until

    def launched(self, done_at: int) -> None:
        self.waits_until = done_at + self.GAP
        self.tenant.awaited_until = self.drained + self.kernel * 5 // 4 + MS // 2
        self.world.at(done_at, self.tenant.note_drained)
        self.world.at(self.waits_until, self.step)


class FalseClient(Process):
    """A client that sends false messages: it always wants a turn and never launches.

    It holds each turn for `holds` ns (None: for ever). Its DONE announces `rest` ns of work, and its region says that
    it is busy until `lease`.
    """

    def __init__(self, world: World, tenant: Tenant, holds: int | None, rest: int = 0, lease: int = ANY) -> None:
        self.holds, self.rest, self.lease = holds, rest, lease
        super().__init__(world, tenant)

    def step(self) -> None:
        self.tenant.busy_until = self.lease
        if not self.is_alive:
            return
        if self.page.turn and self.page.turn != self.ended:
            turn = self.page.turn
            if self.holds is not None and self.turn != turn:
                self.turn = turn
                self.world.at(self.world.now + self.holds, lambda: self.misbehave(turn))
        elif self.wanted_at is None:
            self.want()

    def misbehave(self, turn: int) -> None:
        self.send_done(turn, self.rest)
        self.want()


class Waiting(Process):
    """A host-bound program: it holds each turn for `HOLDS`, then waits for its work, and pauses for `PAUSE`.

    It announces that its work drains in `ANNOUNCED`, and that it waits for it. It says that the work has drained after
    `takes` ns, or never if that is None. `drains` are the times of both: announced and, if it said so, real.
    """

    HOLDS = 500 * US
    ANNOUNCED = MS
    PAUSE = 3 * MS

    def __init__(self, world: World, tenant: Tenant, takes: int | None) -> None:
        self.takes = takes
        self.drains: list[tuple[int, int | None]] = []
        self.pauses_until = 0
        super().__init__(world, tenant)

    def step(self) -> None:
        now = self.world.now
        if self.page.turn and self.page.turn != self.ended:
            turn = self.ended = self.page.turn
            self.tenant.set_busy_until(now + self.HOLDS + self.ANNOUNCED)
            self.world.at(now + self.HOLDS, lambda: self.announce(turn))
        elif self.wanted_at is None and now >= self.pauses_until:
            self.want()

    def announce(self, turn: int) -> None:
        now = self.world.now
        self.drains.append((now + self.ANNOUNCED, None if self.takes is None else now + self.takes))
        self.send_done(turn, self.ANNOUNCED, is_awaited=True)
        self.world.run_schedule()
        if self.takes is not None:
            self.world.at(now + self.takes, lambda: self.confirm(turn))
        self.wanted_at, self.pauses_until = None, now + self.ANNOUNCED + self.PAUSE
        self.soon(self.pauses_until)

    def confirm(self, turn: int) -> None:
        self.send_done(turn, 0)
        self.world.run_schedule()


class Watching(Process):
    """A continuous load that notes when it is given turns."""

    def __init__(self, world: World, tenant: Tenant) -> None:
        self.given: list[int] = []
        super().__init__(world, tenant)

    def read_page(self, page: ClientPage) -> None:
        if page.turn and page.turn != self.page.turn:
            self.given.append(self.world.now - PAGE_DELAY)
        super().read_page(page)
