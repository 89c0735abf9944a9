"""A contract type for import-linter: a package may import the standard library and what its allow-list names.

import-linter's own contracts forbid what is listed, so that a new third-party import passes until someone lists it.
"""

import sys
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from fnmatch import fnmatchcase
from typing import Any, cast

from importlinter import Contract, ContractCheck, fields, output

ANY_DEPTH = ".**"


class AllowedImports(Contract):
    """Every direct import of the `modules` is of the standard library, of the modules themselves, or `allowed`.

    Options:
        modules: packages, with all that is below them.
        except_modules: packages below them to which the contract does not apply, and which they may not import.
        allowed: what may be imported; `*` stands for one name, a final `.**` for everything below.
    """

    type_name = "allowed_imports"

    modules = fields.SetField(subfield=fields.StringField())
    except_modules = fields.SetField(subfield=fields.StringField(), required=False)
    allowed = fields.SetField(subfield=fields.StringField(), required=False)

    def check(self, graph: Any, verbose: bool) -> ContractCheck:
        """Collect the imports that the allow-list does not name."""
        del verbose
        found = sorted(
            (importer, imported)
            for importer in graph.modules
            if self._is_ours(importer)
            for imported in graph.find_modules_directly_imported_by(importer)
            if not self._is_allowed(imported)
        )
        lines = {pair: self._lines(graph, *pair) for pair in found}
        return ContractCheck(kept=not found, metadata={"found": lines})

    def render_broken_contract(self, check: ContractCheck) -> None:
        """Say which module imports what, and on which line."""
        names = ", ".join(sorted(_values(self.modules)))
        allowed = "".join(f", {value}" for value in sorted(_values(self.allowed)))
        for (importer, imported), lines in check.metadata["found"].items():
            output.print_error(f"{importer} must not import {imported} (line {lines})")
        output.print_error(f"{names} may import: the standard library{allowed}.")
        output.new_line()

    def _is_ours(self, module: str) -> bool:
        return _below(module, _values(self.modules)) and not _below(module, _values(self.except_modules))

    def _is_allowed(self, module: str) -> bool:
        is_library = module.partition(".")[0] in sys.stdlib_module_names
        return is_library or self._is_ours(module) or any(_matches(module, value) for value in _values(self.allowed))

    @staticmethod
    def _lines(graph: Any, importer: str, imported: str) -> str:
        details = graph.get_import_details(importer=importer, imported=imported)
        return ", ".join(str(detail["line_number"]) for detail in details)


def _values(field: object) -> AbstractSet[str]:
    """The value of a contract's field: the class declares the field's type, an instance has a set, or None."""
    return cast("AbstractSet[str]", field or frozenset())


def _below(module: str, packages: Iterable[str]) -> bool:
    return any(module == package or module.startswith(f"{package}.") for package in packages)


def _matches(module: str, pattern: str) -> bool:
    if pattern.endswith(ANY_DEPTH):
        return _below(module, [pattern.removesuffix(ANY_DEPTH)])
    return module.count(".") == pattern.count(".") and fnmatchcase(module, pattern)
