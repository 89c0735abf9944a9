"""A walk of the launch gate's machine: threads of a program, the gate's thread and the card, in virtual time.

Each thread does what gate_drive.c does, with the machine's answers. Which thread goes on, what fits into a turn and how
long work takes is random, from a seed. A wait for a change ends by a wake alone: the times that bound it are left out,
so that a missing wake is found.
"""

import contextlib
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from random import Random

from tests.limiter.compute.gate_structures import NEVER, Action, Admission, Event, Machine, Phase, Step, Verdict, View
from tests.limiter.compute.gate_twin import Twin
from tests.limiter.compute.turn_structures import MS

US = 1000
FLUSH_TIMEOUT, CLOSED_TIMEOUT, LAUNCHES_TIMEOUT = 1000 * MS, 1000 * MS, 100 * MS
IDLE_TIMEOUT = SILENCE = 200 * US
MOST_CLOSED = 6
MOST_STEPS = 20_000


class Fault(Exception):
    """The machine did what it must not do."""


@dataclass(frozen=True)
class Plan:
    """The threads of a program.

    Attributes:
        launches: how often each launching thread launches.
        waits: how often each waiting thread waits for the card.
        ends: what a thread ends one after the other: a stream, a context, or, by a drain, what is queued.
        may_queue: launches are queued ahead of their turn.
        is_bound: the program is host-bound.
        is_slow: turns, and launches in the driver, may take longer than the threads that wait for them do.
    """

    launches: tuple[int, ...]
    waits: tuple[int, ...] = ()
    ends: tuple[str, ...] = ()
    may_queue: bool = True
    is_bound: bool = False
    is_slow: bool = False


@dataclass(frozen=True)
class Wait:
    """A thread waits: for a change, if `for_change`; until a time, if it is not NEVER.

    Attributes:
        is_over: what it waits for. If that is so when the time has come, a wake is missing.
    """

    for_change: bool
    until: int = NEVER
    is_over: Callable[[], bool] = bool


Steps = Generator[Wait, None, None]


@dataclass
class Thread:
    name: str
    steps: Steps
    is_service: bool = False
    wait: Wait = Wait(for_change=False, until=0)
    seen: int = 0
    is_done: bool = False


@dataclass
class Walk:
    """One walk; `run` raises Fault.

    Attributes:
        twin: compared with the machine at each step, if there is one.
        owners: which thread owns the request and the turn.
        seen: each phase that was reached, and each event that happened in it.
    """

    machine: Machine
    plan: Plan
    random: Random
    twin: Twin | None = None
    now: int = 0
    changes: int = 0
    phase: Phase = Phase.SHUT
    is_queue_turn: bool = False
    in_driver: int = 0
    closed: int = 0
    turn_launches: int = 0
    admitted: int = 0
    is_thread_running: bool = False
    is_host_waiting: bool = False
    queued_since: int = 0
    last_launch: int = 0
    is_aside: bool = False
    owners: dict[str, str] = field(default_factory=dict)
    threads: list[Thread] = field(default_factory=list)
    current: str = ""
    seen: set[tuple[Phase, Event]] = field(default_factory=set)

    def run(self) -> None:
        """Run all threads to their ends, and check that nothing is left behind."""
        for number, count in enumerate(self.plan.launches):
            self._add(f"launcher {number}", self._launcher(count))
        for number, count in enumerate(self.plan.waits):
            self._add(f"waiter {number}", self._waiter(count))
        if self.plan.ends:
            self._add("end", self._ends())
        self._go_on_to_the_end()
        self._check_end()

    def _go_on_to_the_end(self) -> None:
        for _ in range(MOST_STEPS):
            if not self._go_on():
                return
        raise Fault(f"no end in phase {self.phase.name}: {self._waiting()}")

    def _check_end(self) -> None:
        if self._waiting():
            raise Fault(f"no thread wakes {self._waiting()} in phase {self.phase.name}")
        if self.admitted != sum(self.plan.launches) or self.closed or self.in_driver:
            raise Fault(f"{self.closed} launches stay closed in phase {self.phase.name}")
        if self.owners:
            raise Fault(f"after the end {self.owners} own the gate")

    def _add(self, name: str, steps: Steps, *, is_service: bool = False) -> None:
        self.threads.append(Thread(name, steps, is_service))

    def _waiting(self) -> list[str]:
        return [thread.name for thread in self.threads if not thread.is_done and not thread.is_service]

    def _is_ready(self, thread: Thread) -> bool:
        wait = thread.wait
        return (wait.for_change and self.changes != thread.seen) or wait.until <= self.now

    def _go_on(self) -> bool:
        alive = [thread for thread in self.threads if not thread.is_done]
        ready = [thread for thread in alive if self._is_ready(thread)]
        if not ready:
            timers = [thread.wait.until for thread in alive if thread.wait.until != NEVER]
            if not timers:
                return False
            self.now = min(timers)
            return True
        self._resume(self.random.choice(ready))
        return True

    def _resume(self, thread: Thread) -> None:
        by_time = not (thread.wait.for_change and self.changes != thread.seen)
        if by_time and thread.wait.for_change and thread.wait.is_over():
            raise Fault(f"{thread.name} was not woken in phase {self.phase.name}")
        self.now += US
        self.current = thread.name
        try:
            thread.wait = next(thread.steps)
            thread.seen = self.changes
        except StopIteration:
            thread.is_done = True

    # What gate_drive.c does.

    def _wake(self) -> None:
        self.changes += 1

    def _advance(self, event: Event, **view: object) -> Step:
        seen = View(phase=self.phase, now=self.now, is_queue_turn=self.is_queue_turn, **view)
        self.seen.add((self.phase, event))
        step = self.machine.step(seen, event)
        if self.twin:
            self._compare(self.twin, event, seen, step)
        self.phase = Phase(step.phase)
        if self.phase in {Phase.OPEN, Phase.OPEN_QUEUE}:
            self.is_queue_turn = self.phase is Phase.OPEN_QUEUE
        if step.wakes:
            self._wake()
        return step

    def _compare(self, twin: Twin, event: Event, view: View, step: Step) -> None:
        action = twin.take(event, view)
        expected = (twin.phase, action, twin.wakes)
        if expected != (found := (Phase(step.phase), Action(step.action), step.wakes)):
            raise Fault(f"{event.name} in {self.phase.name}: {found}, the twin says {expected}")

    @contextlib.contextmanager
    def _owning(self, *things: str) -> Generator[None]:
        for thing in things:
            if owner := self.owners.get(thing):
                raise Fault(f"{self.current} and {owner} both own the {thing}")
            self.owners[thing] = self.current
        try:
            yield
        finally:
            for thing in things:
                self.owners.pop(thing, None)

    def _work(self, most: int, slow: int = 0) -> Wait:
        lengths = [0, US, most // 3, most] + ([slow] if slow and self.plan.is_slow else [])
        return Wait(for_change=False, until=self.now + self.random.choice(lengths))

    @staticmethod
    def _await(step: Step, now: int) -> Wait:
        if step.action == Action.AWAIT_CHANGE:
            return Wait(for_change=True)
        if step.action == Action.AWAIT_PACE:
            return Wait(for_change=False, until=now + step.wait_ns)
        return Wait(for_change=True, until=now + step.wait_ns)

    def _await_launches(self) -> Steps:
        until = self.now + LAUNCHES_TIMEOUT
        while not self._are_launches_out() and self.now < until:
            yield Wait(for_change=True, until=until, is_over=self._are_launches_out)

    def _are_launches_out(self) -> bool:
        return not self.in_driver or not self.machine.awaits_launches(self.phase)

    def _is_closing(self) -> bool:
        return self.phase in {Phase.CLOSING, Phase.CLOSING_ASKED}

    def _await_closed(self) -> Steps:
        until = self.now + CLOSED_TIMEOUT
        while self._is_closing() and self.now < until:
            yield Wait(for_change=True, until=until, is_over=lambda: not self._is_closing())

    def _conclude_turn(self, *, has_ends: bool) -> None:
        self.queued_since = self.now
        self._advance(Event.TURN_ENDED, has_ends=has_ends, is_any_closed=self.closed > 0)

    def _end_queue_turn(self, *, may_ask_driver: bool, is_given_back: bool) -> Steps:
        with self._owning("request", "turn"):
            yield self._work(20 * US)
        self._conclude_turn(has_ends=may_ask_driver and is_given_back and self.random.random() < 0.8)

    # Launching threads.

    def _launcher(self, count: int) -> Steps:
        for _ in range(count):
            while (verdict := self._try()) is not Verdict.FITS:
                yield from self._make_room(verdict)
            yield self._work(50 * US, 150 * MS)
            self._leave_driver()
            yield self._work(300 * US)

    def _leave_driver(self) -> None:
        self.in_driver -= 1
        if not self.in_driver and self.machine.awaits_launches(self.phase):
            self._wake()

    def _try(self) -> Verdict:
        match self.machine.admission(self.phase):
            case Admission.NONE:
                return Verdict.FULL
            case Admission.OPENING:
                return self.random.choice((Verdict.FULL, Verdict.UNMEASURED))
            case Admission.TO_TURN:
                verdict = self._fits_turn()
            case Admission.TO_QUEUE:
                verdict = self._fits_queue()
        if verdict is Verdict.FITS:
            self._note_admitted()
        return verdict

    def _note_admitted(self) -> None:
        if "turn" in self.owners:
            raise Fault(f"{self.current} launches while {self.owners['turn']} owns the turn")
        self.admitted += 1
        self.in_driver += 1
        self.last_launch = self.now
        self.is_host_waiting = False

    def _fits_turn(self) -> Verdict:
        if not self.turn_launches or self.random.random() < 0.5:
            self.turn_launches += 1
            return Verdict.FITS
        return self.random.choice((Verdict.TOO_DEEP, Verdict.UNMEASURED, Verdict.FULL))

    def _fits_queue(self) -> Verdict:
        is_queuing = self.phase is not Phase.OPEN_QUEUE
        if self.closed >= MOST_CLOSED or self.random.random() < 0.2:
            return Verdict.TOO_DEEP if self.closed or is_queuing else Verdict.UNMEASURED
        if not is_queuing and not self.closed and self.random.random() < 0.5:
            self.turn_launches += 1
            return Verdict.FITS
        self.closed += 1
        if not is_queuing and self.closed == 1:
            self._wake()
        return Verdict.FITS

    def _make_room(self, verdict: Verdict) -> Steps:
        step = self._advance(Event.LAUNCH_HELD_BACK, verdict=verdict)
        match Action(step.action):
            case Action.OPEN_TURN:
                yield from self._open_turn(is_queueable=verdict is not Verdict.UNMEASURED)
            case Action.CLOSE_TURN | Action.CLOSE_QUEUE_TURN as action:
                yield from self._close_turn(action)
            case Action.AWAIT_ROOM:
                yield Wait(for_change=True, until=self.now + 100 * US)
            case _:
                yield self._await(step, self.now)

    def _close_turn(self, action: Action) -> Steps:
        yield from self._await_launches()
        if self.in_driver:
            self._advance(Event.LAUNCHES_STAY)
            return
        if action is Action.CLOSE_QUEUE_TURN:
            yield from self._end_queue_turn(may_ask_driver=True, is_given_back=self.random.random() < 0.5)
            return
        with self._owning("request", "turn"):
            yield self._work(5 * MS, 1500 * MS)
        if self.random.random() < 0.2:
            self._advance(Event.WORK_STAYS)
            return
        self.is_aside = self.random.random() < 0.5
        self._conclude_turn(has_ends=False)

    def _open_turn(self, *, is_queueable: bool) -> Steps:
        yield from self._await_launches()
        with self._owning("request"):
            yield self._work(20 * US)
            if is_queueable and self.plan.may_queue:
                yield from self._begin_queue()
                return
            yield self._work(5 * MS, 1500 * MS)
        self.turn_launches = 0
        self._advance(Event.TURN_TAKEN)

    def _begin_queue(self) -> Steps:
        if not self.is_thread_running:
            if not any(thread.is_service for thread in self.threads):
                self._add("service", self._service(), is_service=True)
            self.owners.pop("request")
            self._advance(Event.QUEUE_REFUSED)
            return
        if self.is_aside and not self.in_driver:
            self._advance(Event.COLLECTS)
            with self._owning("turn"):
                yield self._work(5 * MS)
            self.is_aside = False
        self.queued_since = self.last_launch = self.now
        self.is_host_waiting = False
        is_at_hand = self.random.random() < 0.3
        if is_at_hand:
            yield self._work(5 * US)
            self.turn_launches = 0
        self.owners.pop("request")
        self._advance(Event.QUEUE_TURN_TAKEN if is_at_hand else Event.QUEUE_BEGUN)

    # The gate's thread.

    def _service(self) -> Steps:
        yield self._work(50 * US)
        self.is_thread_running = True
        while True:
            step = self._advance(Event.THREAD_LOOKS, due_at=self._ask_at())
            match Action(step.action):
                case Action.SERVE_TURN:
                    yield from self._serve_turn()
                case Action.ASK_TURN:
                    with self._owning("request"):
                        yield self._work(2 * MS, 1500 * MS)
                    self._take_turn()
                case _:
                    yield self._await(step, self.now)

    def _ask_at(self) -> int:
        return 0 if not self.plan.is_bound or self.is_host_waiting else self.queued_since + SILENCE

    def _take_turn(self) -> None:
        if self._advance(Event.TURN_ARRIVED).action == Action.BEGIN_TURN:
            self.turn_launches = 0
            self._open_segments(1)

    def _open_segments(self, least: int) -> None:
        count = self.random.randint(min(least, self.closed), self.closed)
        self.closed -= count
        self.turn_launches += count
        if count:
            self._wake()

    def _is_idle(self) -> bool:
        return self.phase is Phase.OPEN_QUEUE and self.plan.is_bound and not self.in_driver and not self.closed

    def _look_at(self, verdict: Verdict) -> int:
        if self._is_idle():
            return 0 if self.is_host_waiting else self.last_launch + IDLE_TIMEOUT
        pace = self.now + 100 * US if verdict is Verdict.TOO_DEEP else NEVER
        return min(pace, self.now + IDLE_TIMEOUT) if self.plan.is_bound else pace

    def _serve_turn(self) -> Steps:
        self._open_segments(0 if self.turn_launches else 1)
        verdict = Verdict.FITS
        if self.closed:
            verdict = Verdict.FULL if self.turn_launches and self.random.random() < 0.3 else Verdict.TOO_DEEP
        step = self._advance(Event.PACED, verdict=verdict, is_idle=self._is_idle(), due_at=self._look_at(verdict))
        match Action(step.action):
            case Action.END_TURN | Action.GIVE_BACK as action:
                is_given_back = action is Action.GIVE_BACK or self.random.random() < 0.5
                yield from self._end_queue_turn(may_ask_driver=False, is_given_back=is_given_back)
            case _:
                yield self._await(step, self.now)

    # Threads that wait for the card, and that end what the gate uses.

    def _waiter(self, count: int) -> Steps:
        for _ in range(count):
            yield self._work(MS)
            self.is_host_waiting = True
            step = self._advance(Event.HOST_WAITS, is_idle=self._is_idle())
            if step.action == Action.GIVE_BACK:
                yield from self._end_queue_turn(may_ask_driver=True, is_given_back=True)
            yield self._work(MS)
            if self._advance(Event.HOST_WAITED).action == Action.CORRECT_DRAIN:
                with self._owning("request", "turn"):
                    yield self._work(20 * US)
                self._conclude_turn(has_ends=False)

    def _ends(self) -> Steps:
        kinds = {
            "stream": self._end_stream,
            "context": self._end_contexts,
            "drain": self._drain,
            "asked": self._asked_for_work,
        }
        for kind in self.plan.ends:
            yield self._work(3 * MS)
            yield from kinds[kind]()

    def _flush(self) -> Steps:
        until = self.now + FLUSH_TIMEOUT
        while True:
            step = self._advance(Event.FLUSH, is_any_closed=self.closed > 0, due_at=until)
            if step.action != Action.AWAIT_CHANGE:
                break
            yield Wait(for_change=True, until=until, is_over=lambda: not self.closed)
        self.closed = 0
        if step.action == Action.OPEN_SEGMENTS and self.phase is not Phase.SHUT and "turn" in self.owners:
            raise Fault("a turn is charged that another thread owns")

    def _drain(self) -> Steps:
        if self.closed:
            yield from self._flush()
            yield from self._await_closed()

    def _end_stream(self) -> Steps:
        yield from self._await_closed()
        if self._is_closing():
            return
        if self._advance(Event.STREAM_ENDS, has_unrecorded_end=self.random.random() < 0.7).action != Action.RECORD_ENDS:
            return
        with self._owning("turn"):
            yield self._work(20 * US)
        self._advance(Event.TURN_GOES_ON)

    def _asked_for_work(self) -> Steps:
        """A thread that waits at another gate does not wait here."""
        if self._advance(Event.WORK_ASKED).action != Action.LOOK_AT_STREAMS:
            return
        with self._owning("turn"):
            yield self._work(10 * US)
        self._advance(Event.TURN_GOES_ON)

    def _end_contexts(self) -> Steps:
        yield from self._flush()
        while True:
            yield from self._await_closed()
            action = Action(self._advance(Event.CONTEXT_ENDS).action)
            if action is not Action.DO_NOTHING:
                yield from self._await_launches()
            if action is not Action.DROP_EVENTS or self.phase is Phase.OPENING:
                break
        self.closed = 0
        if action in {Action.DO_NOTHING, Action.DROP_EVENTS}:
            return
        self.is_aside = False
        with self._owning("turn", *(("request",) if action is Action.DROP_TURN else ())):
            yield self._work(100 * US)
        self._advance(Event.CONTEXT_ENDED)
