"""Scores the rules of `vgpu diagnose --script` against labelled scripts; prints what differs.

    python -m tests.vgpu.workloads.script_scores [FOLDER]

FOLDER holds the texts of the public scripts, one file for each, named REPOSITORY_PATH with `_` for `/`.
"""

import contextlib
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from vgpu.workloads.diagnose import script

SCRIPTS = Path(__file__).parent / "scripts"
LABEL = re.compile(r"# label: (.*)")

Labels = dict[str, int]  # a code, and the line that a finding should name


class Labelled(NamedTuple):
    name: str
    text: bytes
    labels: Labels


class Score(NamedTuple):
    """Codes of scripts: found and labelled, found only, labelled only; and found on another line."""

    hits: int
    false_alarms: list[str]
    missed: list[str]
    elsewhere: list[str]

    @property
    def precision(self) -> float:
        return self.hits / ((self.hits + len(self.false_alarms)) or 1)

    @property
    def recall(self) -> float:
        return self.hits / ((self.hits + len(self.missed)) or 1)


def stored(folder: str) -> Iterator[Labelled]:
    """The scripts of a folder, with the labels in their comments."""
    for path in sorted((SCRIPTS / folder).glob("*.py")):
        text = path.read_text()
        found: Labels = {}
        for number, line in enumerate(text.splitlines(), 1):
            if match := LABEL.search(line):
                for code in match[1].split(", "):
                    found.setdefault(code, number)
        yield Labelled(path.name, text.encode(), found)


def public(folder: Path, which: str) -> Iterator[Labelled]:
    rows = json.loads((SCRIPTS / "public.json").read_text())
    for row in (listed for listed in rows if listed["set"] == which):
        path = folder / f"{row['repository']}_{row['path']}".replace("/", "_")
        yield Labelled(path.name, path.read_bytes(), row["labels"])


def score(scripts: Iterator[Labelled]) -> Score:
    result = Score(0, [], [], [])
    for name, text, labels in scripts:
        found = {}
        with contextlib.suppress(script.NoKnownFramework):  # no rule looks at it, so nothing is found
            found = {str(finding.code): finding.lines for finding in script.diagnose(text)}
        result = result._replace(hits=result.hits + len(found.keys() & labels.keys()))
        result.false_alarms.extend(f"{name}:{found[code][0]} {code}" for code in sorted(found.keys() - labels.keys()))
        result.missed.extend(f"{name}:{labels[code]} {code}" for code in sorted(labels.keys() - found.keys()))
        both = sorted(found.keys() & labels.keys())
        result.elsewhere.extend(f"{name}:{labels[code]} {code}" for code in both if labels[code] not in found[code])
    return result


def main() -> None:
    sets = {"seen": stored("seen"), "held out": stored("held_out")}
    if len(sys.argv) > 1:
        sets |= {f"public, {which} set": public(Path(sys.argv[1]), which) for which in ("first", "second", "third")}
    for name, scripts in sets.items():
        found = score(scripts)
        sys.stdout.write(f"{name}: {found.hits} hits, precision {found.precision:.2f}, recall {found.recall:.2f}\n")
        for kind in ("false_alarms", "missed", "elsewhere"):
            sys.stdout.writelines(f"  {kind}: {place}\n" for place in getattr(found, kind))


if __name__ == "__main__":
    main()
