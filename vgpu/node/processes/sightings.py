"""Debounces findings: one counts when two looks in succession show it, and ends when two in succession do not. Pure.

Between NVML's answer and the reading of /proc a process may end, and its pid may be given to another. A finding keeps
the process that was seen first, so that a container that starts a process each second changes no report.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from vgpu.domain.identifiers import NO_NAMESPACE, CardUuid, Namespace
from vgpu.node.processes.findings import FindingKind, Key, ProcessFinding
from vgpu.pacing import turns

MAX_FINDINGS: Final = 16


class Sightings:
    """The findings that count, at most 16; `more` is the number of those beyond.

    Namespaces have turns, and so has what is in no pod: a crowd in one namespace hides no finding in another.
    """

    def __init__(self) -> None:
        self.more = 0
        self.confirmed: Mapping[Key, ProcessFinding] = {}  # those that are told, oldest first
        self._last: Mapping[Key, ProcessFinding] = {}
        self._counting: dict[Key, ProcessFinding] = {}

    def last_of(self, gpu: CardUuid) -> Mapping[Key, ProcessFinding]:
        """Return what the last look has found on a card."""
        return {key: finding for key, finding in self._last.items() if finding.gpu == gpu}

    def take(self, seen: Mapping[Key, ProcessFinding]) -> bool:
        """Take a look's findings; return whether another look soon would change something."""
        before, self._last = self._last, seen
        kept = {
            key: _still(finding, seen.get(key))
            for key, finding in self._counting.items()
            if key in seen or key in before
        }
        fresh = sorted((key for key in seen if key in before and key not in kept), key=_rank)
        self._counting = kept | {key: seen[key] for key in fresh}
        self.confirmed = dict(turns.taken(self._counting.items(), lambda item: _namespace(item[1]), MAX_FINDINGS))
        self.more = len(self._counting) - len(self.confirmed)
        return bool((seen.keys() - before.keys() - kept.keys()) | (kept.keys() - seen.keys()))


def _rank(key: Key) -> tuple[bool, Key]:
    """Pods go first: their owners get an Event."""
    return key[0] != FindingKind.NO_SHARE, key


def _namespace(finding: ProcessFinding) -> Namespace:
    return finding.pod.namespace if finding.pod else NO_NAMESPACE


def _still(first: ProcessFinding, now: ProcessFinding | None) -> ProcessFinding:
    """Return a finding with what is known of its pod now, and the process that was seen first."""
    return first if now is None else replace(now, pid=first.pid, command=first.command)
