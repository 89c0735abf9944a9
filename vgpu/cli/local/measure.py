"""`vgpu estimate --measure`: runs a command under the limiter, without a limit, and reads the most that it used."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from limiter import launch
from limiter.host import Host
from vgpu.cli.failure import ANSWER_IS_NO, CommandFailed
from vgpu.cli.local import allocations, run
from vgpu.domain.asks.policy import ComputePolicy


class CannotMeasure(CommandFailed):
    """The command failed, or used no card."""

    def __init__(self, message: str) -> None:
        super().__init__(message, ANSWER_IS_NO)


def peak_bytes(command: Sequence[str], environment: Mapping[str, str], host: Host) -> int:
    """Run a command and return the most bytes that its processes had on one card, CUDA contexts included.

    Raises CannotMeasure, CannotStart and LimiterError.
    """
    unlimited = launch.parse(None, None, ComputePolicy.BURST)
    with launch.environment(unlimited, environment, host, command) as limited:
        code = run.run(command, limited)
        cards = allocations.read_cards(Path(limited[launch.LIMITS_ENV]).parent)
    if code:
        raise CannotMeasure(f"--measure: {command[0]} ended with exit code {code}")
    peak = max((card.peak_bytes for card in cards), default=0)
    if not peak:
        raise CannotMeasure(f"--measure: {command[0]} used no GPU memory")
    return peak
