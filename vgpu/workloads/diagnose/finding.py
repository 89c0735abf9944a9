"""A finding: what was seen where. The advice belongs to its code."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from vgpu.workloads.diagnose import catalogue
from vgpu.workloads.diagnose.catalogue import CodeMeaning, FindingCode


@dataclass(frozen=True, slots=True)
class ProgramFinding:
    """One defect of a program.

    Attributes:
        code: what kind of defect.
        lines: where it was seen, ascending; empty where a line says nothing.
        seen: what was seen there, for a person.
        bound: how many times as fast the program is at most without the defect; None where that is not known.
    """

    code: FindingCode
    lines: tuple[int, ...]
    seen: str
    bound: float | None = None

    @property
    def advice(self) -> CodeMeaning:
        """What such a program loses, and what to do."""
        return catalogue.ADVICE[self.code]

    def as_json(self) -> dict[str, object]:
        """Return the finding with its advice, for `-o json`."""
        advice = self.advice
        return {
            "code": str(self.code),
            "lines": list(self.lines),
            "seen": self.seen,
            "why": advice.why,
            "cure": advice.cure,
            "gain": advice.gain,
            "at_most_times_as_fast": None if self.bound is None else round(self.bound, 2),
        }


@dataclass(frozen=True, slots=True)
class ProgramDiagnosis:
    """What was found of one program, log or folder; `sharing` says beside what a running program fits, if known."""

    subject: str
    findings: Sequence[ProgramFinding]
    sharing: str = ""

    def as_json(self) -> dict[str, object]:
        """Return it for `-o json`."""
        found: dict[str, object] = {
            "subject": self.subject,
            "findings": [finding.as_json() for finding in self.findings],
        }
        return found | ({"sharing": self.sharing} if self.sharing else {})


def merged(sightings: Iterable[ProgramFinding]) -> list[ProgramFinding]:
    """Return one finding for each code, with all its lines, in the order of the catalogue."""
    by_code: dict[FindingCode, list[ProgramFinding]] = {}
    for sighting in sightings:
        by_code.setdefault(sighting.code, []).append(sighting)
    return [_joined(code, by_code[code]) for code in catalogue.ADVICE if code in by_code]


def _joined(code: FindingCode, found: list[ProgramFinding]) -> ProgramFinding:
    first = min(found, key=lambda finding: finding.lines)
    return ProgramFinding(code, tuple(sorted({line for finding in found for line in finding.lines})), first.seen)
