"""What a run has found: one entry for each kind, with the first example, as JSON files in a folder."""

import json
import re
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

_MAX_EXAMPLES: Final = 20


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that must not happen.

    Attributes:
        kind: what happened, without names and numbers: findings of one kind are counted together.
        detail: what happened this time.
        subject: the pod's name, where one pod is concerned.
    """

    kind: str
    detail: str
    subject: str = ""


@dataclass(slots=True)
class _Entry:
    kind: str
    first_at: float
    count: int = 0
    examples: list[dict[str, Any]] = field(default_factory=list)


class Findings:
    """All findings of a run; each kind has a file, which is written again with each new finding."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._entries: dict[str, _Entry] = {}
        folder.mkdir(parents=True, exist_ok=True)

    def add(self, finding: Finding, **context: Any) -> bool:
        """Keep a finding with its context (a seed, a pod); returns whether its kind is new."""
        is_new = finding.kind not in self._entries
        entry = self._entries.setdefault(finding.kind, _Entry(finding.kind, time.time()))
        entry.count += 1
        if len(entry.examples) < _MAX_EXAMPLES:
            entry.examples.append({**asdict(finding), "at": round(time.time(), 1), **context})
            path = self._folder / f"{_file_name(finding.kind)}.json"
            path.write_text(json.dumps(asdict(entry), indent=1, default=str))
        return is_new

    def counts(self) -> dict[str, int]:
        """Return how often each kind was found."""
        return {kind: entry.count for kind, entry in self._entries.items()}

    def table(self) -> list[str]:
        """Return lines of text: count, kind and the first example's detail."""
        lines = []
        for entry in sorted(self._entries.values(), key=lambda known: -known.count):
            first = entry.examples[0]
            seed = f" seed {first['seed']}" if "seed" in first else ""
            lines.append(f"{entry.count:6}  {entry.kind}{seed}: {first['detail'][:200]}")
        return lines or ["nothing found"]


def without_numbers(text: str) -> str:
    """Return a text with numbers and quoted values replaced, so that equal messages about different pods are equal."""
    short = re.sub(r'"[^"]*"|\[[^\]]*\]', "...", text)
    return re.sub(r"\d+", "N", short)[:120]


def _file_name(kind: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", kind.lower()).strip("-")[:80] or "finding"
