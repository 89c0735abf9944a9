"""Keeps an MPS daemon running for each group on each card that has members, and none for any other.

Every round reads what is wanted (files, `directories`) and what runs (`/proc`, `vgpu.adapters.mps`), and carries out
the difference (`decision`). So a supervisor that is killed leaves nothing behind that the next one does not find;
daemons go on meanwhile.
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from vgpu.adapters import mps
from vgpu.adapters.mps import MpsProcess
from vgpu.node.space import decision
from vgpu.node.space.decision import FAULT_S, SILENT_S
from vgpu.node.space.directories import GroupOnCard, SpaceDirectories
from vgpu.pacing.back_off import BackOff

if TYPE_CHECKING:
    import subprocess

ROUND_S: Final = 0.2
QUESTIONS_S: Final = 1.0  # between two questions to a daemon that answers
ANSWER_S: Final = 1.0  # for which an answer is waited for
RESTARTS: Final = BackOff(first_s=0.2, longest_s=10.0)
STEADY_S: Final = 60.0  # a daemon that ran for this long did not fail at its start

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Starts:
    """When a group's daemon may be started again."""

    failures: int = 0
    begun: float = 0.0
    not_before: float = 0.0

    def note_start(self, now: float) -> None:
        """A daemon is started: the next start waits longer, unless this one runs for a while."""
        self.failures = 1 if now - self.begun >= STEADY_S else self.failures + 1
        self.begun, self.not_before = now, now + RESTARTS.delay_s(self.failures)


@dataclass(slots=True)
class _Watched:
    """Since when a group's processes have not been as they should be."""

    asked_at: float = 0.0
    has_answered: bool = False
    since: dict[MpsProcess, float] = field(default_factory=dict)

    def is_due(self, now: float) -> bool:
        """Whether the daemon is to be asked: in every round while it does not answer."""
        return not self.has_answered or now - self.asked_at >= QUESTIONS_S

    def note(self, processes: Collection[MpsProcess], bad: Collection[MpsProcess], now: float) -> bool:
        """Take note of an answer: `bad` are faulted servers, or the daemons where none has answered.

        Return whether a server has faulted since the last answer.
        """
        has_faulted = any(process.is_server and process not in self.since for process in bad)
        self.since = {process: self.since.get(process, now) for process in processes if process in bad}
        self.has_answered, self.asked_at = all(process.is_server for process in self.since), now
        return has_faulted

    def stuck(self, now: float) -> frozenset[MpsProcess]:
        """Return the processes that have been so for too long."""
        longest_s = {True: FAULT_S, False: SILENT_S}
        found = self.since.items()
        return frozenset(process for process, since in found if now - since >= longest_s[process.is_server])


class Supervisor:
    """Runs the daemons of this node."""

    def __init__(
        self,
        directories: SpaceDirectories,
        program: Path,
        environment: Mapping[str, str],
        clock: Callable[[], float],
        proc: Path = Path("/proc"),
    ) -> None:
        """`program` is nvidia-cuda-mps-control; daemons get `environment`. `clock` is monotonic, in seconds."""
        self._directories, self._program, self._environment = directories, program, environment
        self._clock, self._proc = clock, proc
        self._started: list[subprocess.Popen[bytes]] = []
        self._starts: dict[GroupOnCard, _Starts] = defaultdict(_Starts)
        self._watched: dict[GroupOnCard, _Watched] = defaultdict(_Watched)

    async def run(self) -> None:
        """Look after the groups until cancelled; daemons go on then. Nothing counts as served at the beginning."""
        for of in self._directories.ready():
            self._directories.set_ready(of, is_ready=False)
        try:
            while True:
                self._directories.set_supervised(is_supervised=True)
                await self.look()
                await asyncio.sleep(ROUND_S)
        finally:
            self._directories.set_supervised(is_supervised=False)

    async def look(self) -> None:
        """Carry out one round; a group whose files cannot be read or written is logged, and looked at again."""
        self._started = [process for process in self._started if process.poll() is None]
        running = self._running()
        wanted = self._directories.wanted()
        groups = {*running, *wanted, *self._directories.ready()}
        await asyncio.gather(*(self._try(of, running.get(of, []), is_wanted=of in wanted) for of in groups))
        for of in {*self._starts, *self._watched} - {*running, *wanted}:
            self._starts.pop(of, None)
            self._watched.pop(of, None)

    def _running(self) -> dict[GroupOnCard, list[MpsProcess]]:
        found: dict[GroupOnCard, list[MpsProcess]] = defaultdict(list)
        for process in mps.processes(self._proc):
            if of := self._directories.of_pipe(process.pipe):
                found[of].append(process)
        return found

    async def _try(self, of: GroupOnCard, processes: list[MpsProcess], *, is_wanted: bool) -> None:
        try:
            await self._look_after(of, processes, is_wanted=is_wanted)
        except OSError as error:
            log.warning("group %s: %s", of, error)

    async def _look_after(self, of: GroupOnCard, processes: list[MpsProcess], *, is_wanted: bool) -> None:
        watched = self._watched[of]
        is_asked = is_wanted and processes and watched.is_due(self._clock())
        if is_asked and watched.note(processes, await self._bad(of, processes), self._clock()):
            log.warning("group %s: its server has faulted", of)
            self._directories.note_fault(of)
        verdict = decision.judge(processes, watched.stuck(self._clock()), is_wanted=is_wanted)
        self._directories.set_ready(of, is_ready=verdict.is_served and watched.has_answered)
        if not is_wanted and self._directories.members(of):
            return  # since this round began; a member that comes later finds the group not ready, and waits
        if not is_wanted:
            self._directories.forget_fault(of)
        for process in verdict.kill:
            log.info("group %s: killing %s", of, process)
            process.kill(self._proc)
        if verdict.start and is_wanted:
            self._start(of)

    def _start(self, of: GroupOnCard) -> None:
        starts = self._starts[of]
        if self._clock() < starts.not_before:
            return
        starts.note_start(self._clock())
        self._directories.make(of)
        pipe, logs = self._directories.pipe(of), self._directories.log(of)
        process = mps.start(self._program, pipe, logs, self._environment, of.card)
        self._started.append(process)
        self._watched[of].has_answered = False
        log.info("group %s: daemon started as process %d", of, process.pid)

    async def _bad(self, of: GroupOnCard, processes: list[MpsProcess]) -> frozenset[MpsProcess]:
        """Return the servers that are faulted, or the daemons where none answers."""
        servers = [process for process in processes if process.is_server]
        faulted = set[MpsProcess]()
        for server in servers:
            if (answer := await self._ask(of, f"get_server_status {server.pid}")) is None:
                return frozenset(process for process in processes if not process.is_server)
            faulted |= {server} if mps.FAULT in answer else set()
        if not servers and await self._ask(of, "get_server_list") is None:
            return frozenset(processes)
        return frozenset(faulted)

    async def _ask(self, of: GroupOnCard, command: str) -> list[str] | None:
        return await mps.ask(self._program, self._directories.pipe(of), command, self._environment, ANSWER_S)
