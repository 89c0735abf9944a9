"""How a command fails: a message, and an exit code."""

from typing import Final

from vgpu.domain.errors import VgpuError

ANSWER_IS_NO: Final = 1  # a pod that cannot be placed, a finding of doctor or diagnose
WRONG_USAGE: Final = 2
NOT_FOUND: Final = 3
NOT_ALLOWED: Final = 4
NO_ANSWER: Final = 5
OUTPUT_FAILED: Final = 6

EXIT_CODES: Final = (
    "Exit codes: 0 done; 1 the answer is no (simulate: a pod is not placed; doctor, diagnose: something is wrong); "
    "2 wrong usage; 3 no such object; 4 not allowed; 5 no answer from the server; 6 the output cannot be written."
)


class CommandFailed(VgpuError):
    """A command that has no answer to show; `code` is the exit code."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code
