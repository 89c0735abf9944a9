"""Text to syntax tree. Scripts are hostile input: bounded in size and nesting."""

import ast
import warnings
from typing import Final

from vgpu.domain.errors import MalformedScript

MAX_BYTES: Final = 4 << 20
MAX_NODES: Final = 100_000


def parse(text: bytes) -> ast.Module:
    """Return the syntax tree of a script. Raises MalformedScript and no other exception."""
    if len(text) > MAX_BYTES:
        raise MalformedScript(f"more than {MAX_BYTES >> 20} MiB: not a training script")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the script's own, such as invalid escapes
            tree = ast.parse(text)
    except SyntaxError as error:
        where = f"line {error.lineno}: " if error.lineno else ""
        raise MalformedScript(f"not a script in Python: {where}{error.msg}") from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise MalformedScript(f"not a script in Python: {error or type(error).__name__}") from error
    if sum(1 for _ in ast.walk(tree)) > MAX_NODES:
        raise MalformedScript(f"more than {MAX_NODES} nodes in its syntax tree")
    if isinstance(data := _only_value(tree), ast.Dict | ast.List):
        raise MalformedScript(_what_it_is(data))
    return tree


def _only_value(tree: ast.Module) -> ast.expr | None:
    """Return the expression that is all of a file; None for any other file."""
    return tree.body[0].value if len(tree.body) == 1 and isinstance(tree.body[0], ast.Expr) else None


def _what_it_is(data: ast.Dict | ast.List) -> str:
    """Say what a file is that Python reads as one dictionary or list."""
    keys = {key.value for key in data.keys if isinstance(key, ast.Constant)} if isinstance(data, ast.Dict) else set()
    if {"cells", "nbformat"} <= keys:
        return "a notebook, not a script: write its code into one by `jupyter nbconvert --to script FILE`"
    return "not a script in Python: data, as in JSON"
