"""Where the time of programs on one card went: what their regions and the arbiter's debug log say of it.

Of each tenant of the arbiter: how long it held the card, its turns, how long they took from the request to yield to the
end of the last member's work, and how often work went on after DONE. Of each program: what it was charged, what it
waited for, and its handovers. All of it is counted in any case, and read before and after.
"""

import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from benchmarks.compute import node
from benchmarks.compute.node import BenchmarkNode, Env

LOG_LEVEL: Final = "debug"  # of the arbiter, at which it writes its counts
LOGGED_S: Final = 0.7  # the arbiter writes them each half second
_LINE: Final = re.compile(r"turns of tenant (\d+), (\S+ \d+), card \S+: (.*)")

Counts = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class CountedTurns:
    """What was counted at one moment: of each tenant, by number and name, and of each program, by name."""

    tenants: Mapping[str, Counts]
    programs: Mapping[str, Counts]


class ExplainedTurns:
    """The counts since `begin`, of programs whose environments have these names."""

    def __init__(self, where: BenchmarkNode, programs: Mapping[str, Env]) -> None:
        self._node, self._programs = where, programs
        self._before = self._read()

    def begin(self) -> None:
        """Count from now on."""
        self._before = self._read()

    def lines(self, seconds: float) -> Iterator[str]:
        """Yield what was counted since `begin`, within which the programs worked for that long, and rest now."""
        return explained(self._before, self._read(), seconds)

    def _read(self) -> CountedTurns:
        time.sleep(LOGGED_S)
        programs = {name: _of_program(env) for name, env in self._programs.items()}
        return CountedTurns(turns_in(self._node.log), programs)


def turns_in(log: str) -> dict[str, dict[str, int]]:
    """Return the newest counts of each tenant in the arbiter's log."""
    found = {}
    for number, name, figures in _LINE.findall(log):
        found[f"{name} (tenant {number})"] = {
            figure: int(value) for figure, value in (word.split("=") for word in figures.split())
        }
    return found


def _of_program(env: Env) -> dict[str, int]:
    found: dict[str, int] = {}
    for card in node.cards_of(env):
        did = card.activity
        waits = {"turn": did.turn.ns, "share": did.share.ns, "drain": did.drain.ns, "queued": did.queued.ns}
        counted = {
            **{f"{cause}_ns": ns for cause, ns in waits.items()},
            "gpu_ns": card.gpu_ns,
            "turns": did.turns,
            "handovers": did.handovers,
            "handover_ns": did.handover_ns,
            "host_gap_ns": did.host_gap_ns,
            "synchronize_ns": did.synchronize_ns,
        }
        found = {name: found.get(name, 0) + value for name, value in counted.items()}
    return found


def explained(before: CountedTurns, after: CountedTurns, seconds: float) -> Iterator[str]:
    """Yield a line for each tenant, and for each program."""
    for name, now in after.tenants.items():
        more = _more(before.tenants.get(name, {}), now)
        if more["turns"]:
            yield f"tenant {name}: {_tenant_words(more, now['longest_drain_ns'], seconds)}"
    for name, now in after.programs.items():
        more = _more(before.programs.get(name, {}), now)
        if more:
            yield f"program {name}: {_program_words(more, seconds)}"


def _more(before: Counts, now: Counts) -> dict[str, int]:
    return {name: value - before.get(name, 0) for name, value in now.items()}


def _tenant_words(more: Counts, longest_ns: int, seconds: float) -> str:
    return (
        f"held {_percent(more['held_ns'], seconds)}; {more['turns'] / seconds:.1f} turns a second of "
        f"{_mean_ms(more['held_ns'], more['turns'])}, {more['asked_back'] / seconds:.1f} asked back; "
        f"request to yield to the last drain {_mean_ms(more['drain_ns'], more['asked_back'])}, longest ever "
        f"{longest_ns / 1e6:.2f} ms; {more['busy_dones']} of {more['dones']} DONE with kernels that end later, "
        f"by {_mean_ms(more['rest_ns'], more['busy_dones'])}"
    )


def _program_words(more: Counts, seconds: float) -> str:
    waits = ", ".join(f"{cause} {_percent(more[f'{cause}_ns'], seconds)}" for cause in ("turn", "share", "drain"))
    return (
        f"charged {_percent(more['gpu_ns'], seconds)}; waited for {waits}; "
        f"queued {_percent(more['queued_ns'], seconds)}; "
        f"{more['turns'] / seconds:.1f} turns a second, {more['handovers'] / seconds:.1f} handovers of "
        f"{_mean_ms(more['handover_ns'], more['handovers'])}; host gaps {_percent(more['host_gap_ns'], seconds)}, "
        f"in synchronize {_percent(more['synchronize_ns'], seconds)}"
    )


def _percent(ns: int, seconds: float) -> str:
    return f"{ns / seconds / 1e7:.2f} %"


def _mean_ms(ns: int, count: int) -> str:
    return f"{ns / count / 1e6:.3f} ms" if count else "-"
