"""A process that allocates and frees as it is told: the program `worker.c`, natively or under a limit."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from benchmarks.programs.process import CompiledProgram

MIB = 1 << 20
OUT_OF_MEMORY = 2
NOT_SUPPORTED = 801
MISSING = -1


@dataclass(frozen=True, slots=True)
class CommandOutcome:
    """The outcome of a command.

    Attributes:
        result: CUresult; MISSING when the driver lacks the function that failed.
        function: the function that failed.
        id: names the memory that was allocated.
        ns: how long the command took.
    """

    result: int
    function: str
    id: int = -1
    ns: int = 0

    def __str__(self) -> str:
        if self.result == MISSING:
            return f"no {self.function}"
        return f"{self.function} {self.result}" if self.result else "ok"


class Worker(CompiledProgram):
    """The running program. Raises RuntimeError when it ends or cannot start."""

    def __init__(self, env: Mapping[str, str]) -> None:
        super().__init__(env, "worker")
        started = self.read()
        if started["result"]:
            raise RuntimeError(f"CUDA does not start: {started}")

    @property
    def pid(self) -> int:
        """Return the process's PID."""
        return self._process.pid

    def take(self, size: int, name: str) -> CommandOutcome:
        """Allocate by the class of that name."""
        return CommandOutcome(**self.ask(f"take {size} {name}"))

    def give(self, memory: int) -> CommandOutcome:
        """Free what a `take` allocated."""
        return CommandOutcome(**self.ask(f"give {memory}"))

    def open(self, other: Self, memory: int, size: int, how: str) -> CommandOutcome:
        """Open memory of another worker; `how` is a way of sharing.h."""
        shared = other.ask(f"export {memory} {how}")
        token = shared.pop("token")
        return (
            CommandOutcome(**shared) if shared["result"] else CommandOutcome(**self.ask(f"import {size} {how} {token}"))
        )

    def exec(self, program: str, argument: str) -> None:
        """Replace the process's program by another one."""
        self.write(f"exec {program} {argument}")

    def kill(self) -> None:
        """Send SIGKILL and wait for its end."""
        self._process.kill()
        self._process.wait()

    def free(self) -> int:
        """Return the free bytes by cuMemGetInfo."""
        return int(self.ask("info")["free"])
