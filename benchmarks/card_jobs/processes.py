"""The processes of a job, seen from the benchmark that starts them."""

import json
import select
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

READY_S: Final = 120.0
END_S: Final = 10.0
OWN_S: Final = 10.0  # a process that ends itself after a timeout writes where it was: the benchmark waits for that
LAST_LINES: Final = 6
MOST_WORDS: Final = 700
THREAD: Final = "(most recent call first):"  # of faulthandler, as the next one; the main thread comes last
TIME_OUT: Final = "Timeout ("


class CardProgram:
    """A process of a job. Raises RuntimeError, with the last lines of its standard error, when it fails."""

    def __init__(self, name: str, command: Sequence[str], env: Mapping[str, str]) -> None:
        self._name = name
        self._errors = tempfile.TemporaryFile("w+", errors="replace")  # noqa: SIM115  # closed with the process
        self._process = subprocess.Popen(
            command,
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
        )

    def fileno(self) -> int:
        """Return where its answers come from."""
        assert self._process.stdout is not None
        return self._process.stdout.fileno()

    def ask(self, request: Mapping[str, Any]) -> None:
        """Send a request, which `answers_of` awaits."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
        except OSError:
            raise self.failure("it has ended") from None

    def read(self) -> dict[str, Any]:
        """Read the next answer, of which select has said that it can be read."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line.endswith("\n"):
            raise self.failure("it ended without an answer")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def failure(self, what: str) -> RuntimeError:
        """Kill it, and return the error that says what happened."""
        self.kill()
        self._errors.seek(0)
        return RuntimeError(f"{self._name}: {what}: {last_words(self._errors.read())}")

    def kill(self) -> None:
        """Kill it, and wait for its end."""
        self._process.kill()
        self._process.wait()

    def close_input(self) -> None:
        """Tell it to end."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.close()
        except OSError:  # it has ended with a request unread
            return

    def end(self) -> None:
        """Wait for its end, and kill it after a timeout."""
        try:
            self._process.wait(END_S)
        except subprocess.TimeoutExpired:
            self.kill()
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._errors.close()


def last_words(errors: str) -> str:
    """Return the last lines of a standard error, on one line; of a time-out where the main thread was."""
    lines = [line.strip() for line in errors.replace("|", "/").splitlines() if line.strip()]
    told = [line for line in lines if not line.startswith("frame #")]  # of NCCL's C++
    threads = [number for number, line in enumerate(told) if line.endswith(THREAD)]
    if threads and any(line.startswith(TIME_OUT) for line in told):
        return " // ".join(["time-out in", *told[threads[-1] + 1 :][:LAST_LINES]])[:MOST_WORDS]
    return " // ".join(told[-LAST_LINES:])[-MOST_WORDS:]


def answers_of(programs: Sequence[CardProgram], timeout_s: float) -> list[dict[str, Any]]:
    """Return the next answer of each process. When one fails, or is late, all are killed: others may wait for it."""
    try:
        return _answers(programs, timeout_s)
    except RuntimeError:
        for program in programs:
            program.kill()
        raise


def _answers(programs: Sequence[CardProgram], timeout_s: float) -> list[dict[str, Any]]:
    until = time.monotonic() + timeout_s
    found: dict[CardProgram, dict[str, Any]] = {}
    while missing := [program for program in programs if program not in found]:
        ready, _, _ = select.select(missing, [], [], max(0.0, until - time.monotonic()))
        if not ready:
            raise missing[0].failure(f"no answer in {timeout_s:g} s: it was killed")
        found |= {program: program.read() for program in ready}
    return [found[program] for program in programs]


def ask_all(programs: Sequence[CardProgram], timeout_s: float, **request: Any) -> list[dict[str, Any]]:
    """Send each process the request and return their answers."""
    for program in programs:
        program.ask({**request, "timeout_s": timeout_s})
    return answers_of(programs, timeout_s + OWN_S)


def end_all(programs: Sequence[CardProgram]) -> None:
    """End processes: each is told before the first one is waited for."""
    for program in programs:
        program.close_input()
    for program in programs:
        program.end()
