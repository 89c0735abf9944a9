"""Whether documented Python names only what exists, and calls it with arguments that it has; nothing of it is run."""

import ast
import importlib
import inspect
from collections.abc import Iterator
from functools import reduce
from typing import Any

from tests.contract.repository import ROOT


def problems(text: str) -> list[str]:
    """What is wrong with a piece of code."""
    try:
        tree = ast.parse(text)
        known = dict(_imported(tree))
    except (SyntaxError, ImportError, AttributeError) as error:
        return [str(error)]
    return [problem for node in ast.walk(tree) if isinstance(node, ast.Call) for problem in _of_call(node, known)]


def _imported(tree: ast.Module) -> Iterator[tuple[str, Any]]:
    """Yield the modules, and the names from modules, that the code imports from the repository."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((name.name, importlib.import_module(name.name)) for name in node.names if _is_ours(name.name))
        if isinstance(node, ast.ImportFrom) and _is_ours(node.module or ""):
            yield from ((name.asname or name.name, _member(str(node.module), name.name)) for name in node.names)


def _is_ours(module: str) -> bool:
    return (ROOT / module.partition(".")[0]).is_dir()


def _member(module: str, name: str) -> Any:
    imported = importlib.import_module(module)
    return getattr(imported, name) if hasattr(imported, name) else importlib.import_module(f"{module}.{name}")


def _of_call(call: ast.Call, known: dict[str, Any]) -> Iterator[str]:
    first, *rest = ast.unparse(call.func).split(".")
    if first not in known:
        return
    try:
        function = reduce(getattr, rest, known[first])
        inspect.signature(function).bind(*call.args, **{str(keyword.arg): keyword.value for keyword in call.keywords})
    except (AttributeError, TypeError) as error:
        yield f"line {call.lineno}: {error}"
