"""The include direction between the folders of a C tree: which folder may include which, and no include cycles.

A table names the folders in order, each with the folders that it may include besides itself. A module is a `.c` file
and the header of the same name. Modules that include each other, directly or through others, form a cycle: none is
allowed.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

LONGEST_CYCLE = 1

Table = Mapping[str, Sequence[str]]

_INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Include:
    """One line `#include "..."`, with paths relative to the root; `target` is None where no file has that name."""

    file: Path
    line: int
    name: str
    target: Path | None

    @property
    def is_between_modules(self) -> bool:
        """Whether it names a file of another module."""
        return self.target is not None and _module(self.target) != _module(self.file)


def in_order(*folders: str) -> dict[str, tuple[str, ...]]:
    """Return the table in which each folder may include every folder named before it."""
    return {folder: folders[:number] for number, folder in enumerate(folders)}


def check(root: Path, table: Table, include_paths: Sequence[Path] = ()) -> None:
    """Stop the program with all violations, if there are any."""
    if found := violations(root, table, include_paths):
        raise SystemExit("\n".join(found))


def violations(root: Path, table: Table, include_paths: Sequence[Path] = ()) -> list[str]:
    """Return a line for each violation in the C files below `root`.

    Folders of the table are relative to `root`. An include is searched in the folder of its file, then in `root` and in
    `include_paths`, which are folders below `root`. Raises ValueError where the table lets a folder include one that is
    named after it.
    """
    _check_table(table)
    files = sorted(path.relative_to(root) for path in root.rglob("*.[ch]"))
    includes = [include for file in files for include in _read(root, file, (root, *include_paths))]
    name = root.resolve().name
    return [
        *(f"{name}/{file}: the table has no folder {file.parent}" for file in files if str(file.parent) not in table),
        *(
            f"{name}/{include.file}:{include.line}: no file {include.name}"
            for include in includes
            if include.target is None
        ),
        *(_upward(name, table, include) for include in includes if _is_upward(table, include)),
        *_long_cycles(name, [include for include in includes if include.is_between_modules]),
    ]


def _check_table(table: Table) -> None:
    folders = list(table)
    for number, folder in enumerate(folders):
        if later := set(table[folder]).difference(folders[:number]):
            raise ValueError(f"{folder} may include only folders named before it, not {', '.join(sorted(later))}")


def _read(root: Path, file: Path, paths: Sequence[Path]) -> Iterator[Include]:
    text = (root / file).read_text()
    for match in _INCLUDE.finditer(text):
        line = text.count("\n", 0, match.start(1)) + 1
        yield Include(file, line, match[1], _target(root, (root / file.parent, *paths), match[1]))


def _target(root: Path, folders: Sequence[Path], name: str) -> Path | None:
    found = next((path for folder in folders if (path := folder / name).is_file()), None)
    return found.resolve().relative_to(root.resolve()) if found else None


def _module(file: Path) -> Path:
    return file.with_suffix("")


def _is_upward(table: Table, include: Include) -> bool:
    source = str(include.file.parent)
    return include.target is not None and str(include.target.parent) not in {source, *table.get(source, ())}


def _upward(name: str, table: Table, include: Include) -> str:
    source, target = include.file.parent, include.target.parent if include.target else None
    allowed = ", ".join(f"{name}/{folder}" for folder in table.get(str(source), ())) or "none"
    return f"{name}/{include.file}:{include.line}: {name}/{source} may not include {name}/{target} (allowed: {allowed})"


def _long_cycles(name: str, includes: Sequence[Include]) -> Iterator[str]:
    edges: dict[Path, set[Path]] = {}
    for include in includes:
        edges.setdefault(_module(include.file), set()).add(_module(include.target or include.file))
    for cycle in _cycles(edges):
        if len(cycle) > LONGEST_CYCLE:
            yield f"include cycle of {len(cycle)} files: {', '.join(f'{name}/{module}' for module in sorted(cycle))}"
            within = [
                include
                for include in includes
                if {_module(include.file), _module(include.target or include.file)} <= cycle
            ]
            yield from (
                f"  {name}/{include.file}:{include.line} includes {name}/{include.target}" for include in within
            )


def _cycles(edges: Mapping[Path, set[Path]]) -> list[frozenset[Path]]:
    """Return the sets of modules that all reach each other (strongly connected components with an edge)."""
    reach = {module: _reachable(edges, module) for module in edges}
    cycles = (frozenset(other for other in reach[module] if module in reach.get(other, ())) for module in edges)
    return sorted({cycle for cycle in cycles if cycle}, key=sorted)


def _reachable(edges: Mapping[Path, set[Path]], start: Path) -> set[Path]:
    found: set[Path] = set()
    waiting = [start]
    while waiting:
        more = edges.get(waiting.pop(), set()) - found
        found |= more
        waiting += more
    return found
