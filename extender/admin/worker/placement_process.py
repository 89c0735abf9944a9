"""The parent's side of the process that explains and simulates: one question at a time, each with a time limit.

Callers have turns. A question that does not end in time, although the process checks its clock after each node, is
ended with the process, and the next question starts another one. Node views are sent in small pieces, because writing a
pickle holds the interpreter's lock.
"""

import asyncio
import contextlib
import logging
import pickle
import sys
from http import HTTPStatus
from typing import Any, Final

from extender.admin.exchange import pickle_frames
from extender.admin.exchange.sent_objects import is_same_view
from extender.admin.exchange.snapshots import ClusterSnapshot
from extender.admin.problems import AdminProblem
from extender.admin.security.caller_turns import RETRY_AFTER, CallerTurns
from extender.admin.worker.fleet import HoldUpdate, Update
from extender.admin.worker.questions import Question, WorkerAnswer

LIMIT_S: Final = 5.0
GRACE_S: Final = 2.0  # a single node takes 10 ms at most
START_S: Final = 30.0  # on a busy machine, where it has the lowest priority
MAX_WAITING: Final = 32
MAX_OF_CALLER: Final = 8
NODES_PER_PIECE: Final = 16

log = logging.getLogger(__name__)


class PlacementProcess:
    """Asks the process; starts it at the first question. Every method runs on the admin's event loop."""

    def __init__(self, limit_s: float = LIMIT_S, *, grace_s: float = GRACE_S, start_s: float = START_S) -> None:
        """A question ends after `limit_s`, the process `grace_s` later; it is ready `start_s` after its start."""
        self._grace_s = grace_s
        self._start_s = start_s
        self._limit_s = limit_s
        self._turns = CallerTurns(1, MAX_WAITING, MAX_OF_CALLER)
        self._process: asyncio.subprocess.Process | None = None
        self._known = dict(ClusterSnapshot(0).views)
        self._held = dict(ClusterSnapshot(0).held_usages)

    async def ask(self, snapshot: ClusterSnapshot, question: Question, caller: str) -> bytes:
        """Return the answer's JSON.

        Raises:
            AdminProblem: 503, there is no answer in time, or too many questions wait.
        """
        async with self._turns.turn(caller):
            found = await self._answer(snapshot, question)
        if found.failure:
            raise _unavailable(found.failure + (f" ({self._limit_s:g} s)" if found.is_late else ""))
        return found.body

    async def close(self) -> None:
        """End the process."""
        process, self._process, self._known, self._held = self._process, None, {}, {}
        if process is not None and process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()

    async def _answer(self, snapshot: ClusterSnapshot, question: Question) -> WorkerAnswer:
        try:
            async with asyncio.timeout(self._start_s):
                process = await self._started()
            async with asyncio.timeout(self._limit_s + self._grace_s):
                await self._update(process, snapshot)
                return await self._exchange(process, question)
        except TimeoutError:
            await self.close()
            return WorkerAnswer(failure="the time for the answer is over", is_late=True)
        except (OSError, EOFError, asyncio.IncompleteReadError, pickle.PickleError) as error:
            log.warning("the placement process failed: %s", error)
            await self.close()
            return WorkerAnswer(failure="the placement process failed; it is started again")
        except asyncio.CancelledError:  # the client has gone: the process would answer the next client with this answer
            await self.close()
            raise

    async def _started(self) -> asyncio.subprocess.Process:
        if self._process is None or self._process.returncode is not None:
            self._known, self._held = {}, {}
            self._process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "extender.admin.worker",
                stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
            )  # fmt: skip
            await _receive(self._process)  # it has begun to listen
        return self._process

    async def _update(self, process: asyncio.subprocess.Process, snapshot: ClusterSnapshot) -> None:
        """Send what has changed since the last question."""
        known = self._known
        changed = [
            view for name, view in snapshot.views.items() if name not in known or not is_same_view(known[name], view)
        ]
        gone = [name for name in self._known if name not in snapshot.views]
        for first in range(0, len(changed), NODES_PER_PIECE):
            await _send(process, Update(changed[first : first + NODES_PER_PIECE]))
        if gone:
            await _send(process, Update((), gone))
        if snapshot.held_usages != self._held:
            await _send(process, HoldUpdate(snapshot.held_usages))
        self._known, self._held = dict(snapshot.views), dict(snapshot.held_usages)

    async def _exchange(self, process: asyncio.subprocess.Process, question: Question) -> WorkerAnswer:
        await _send(process, (question, self._limit_s))
        found: WorkerAnswer = await _receive(process)
        return found


async def _receive(process: asyncio.subprocess.Process) -> Any:
    assert process.stdout is not None  # noqa: S101 - it was started with a pipe
    return await pickle_frames.receive(process.stdout)


async def _send(process: asyncio.subprocess.Process, message: object) -> None:
    assert process.stdin is not None  # noqa: S101 - it was started with a pipe
    process.stdin.write(pickle_frames.encode(message))
    await process.stdin.drain()


def _unavailable(detail: str) -> AdminProblem:
    return AdminProblem(HTTPStatus.SERVICE_UNAVAILABLE, detail, headers=RETRY_AFTER)
