"""`vgpu diagnose --live`: reads the regions of this machine's allocations twice, and says what keeps programs back."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from limiter.host import Host
from vgpu.cli.failure import NOT_FOUND, CommandFailed
from vgpu.cli.local import allocations
from vgpu.cli.local.allocations import LocalAllocation
from vgpu.region import CardUse
from vgpu.workloads.diagnose import live
from vgpu.workloads.diagnose.finding import Finding

NOT_MEASURED: Final = (
    "the limiter measures a program that has a share of the time, or is not alone on its card; this one is neither"
)


def diagnose(directories: Sequence[Path], name: str, seconds: float, host: Host) -> list[tuple[str, list[Finding]]]:
    """Diagnose the allocations whose ID begins with `name`, or whose command or pod contains `name`.

    `seconds` is the time between the two readings that are compared. Returns each allocation on each card, by name.

    Raises CommandFailed where there is none, or nothing is measured.
    """
    before, begun_ns = _read(directories, name), host.monotonic_ns()
    if not before:
        raise CommandFailed(f"--live: no allocation of that ID, command or pod: {name[:80]}; see vgpu top", NOT_FOUND)
    host.sleep(seconds)
    after, ns = _read(directories, name), host.monotonic_ns() - begun_ns
    found = [
        (_subject(each, card), list(live.check(seen)))
        for key, (each, card) in after.items()
        if key in before and live.is_measured(card)
        if (seen := live.period(before[key][1], card, ns, _cores(each, card))) is not None
    ]
    if not found:
        raise CommandFailed(f"--live: {name[:80]}: {NOT_MEASURED}", NOT_FOUND)
    return found


def _read(directories: Sequence[Path], name: str) -> dict[tuple[Path, str], tuple[LocalAllocation, CardUse]]:
    return {
        (each.folder, card.gpu): (each, card)
        for directory in directories
        for each in allocations.read_all(directory)
        if each.folder.name.startswith(name) or name in each.name
        for card in each.cards
    }


def _subject(allocation: LocalAllocation, card: CardUse) -> str:
    return f"{allocation.name} on {card.gpu}"


def _cores(allocation: LocalAllocation, card: CardUse) -> int:
    granted = allocation.limits.cards if allocation.limits else ()
    return next((each.cores for each in granted if each.gpu == card.gpu), granted[0].cores if granted else 0)
