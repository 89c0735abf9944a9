"""Rules about Python loops in what prepares a sample."""

import ast
import re
from collections.abc import Iterator
from typing import Final

from vgpu.workloads.diagnose.catalogue import FindingCode
from vgpu.workloads.diagnose.finding import ProgramFinding
from vgpu.workloads.diagnose.script import names
from vgpu.workloads.diagnose.script.program import ScriptProgram

_FEW: Final = 16  # iterations of a loop that costs nothing beside reading a sample
_NOT_ELEMENTS: Final = re.compile(
    r"transform|augment|\bops?\b|keys|fields|columns|views|items|values|scales|heads", re.IGNORECASE
)
_PY_FUNCTIONS: Final = frozenset({"py_function", "numpy_function", "py_func"})


def check(program: ScriptProgram) -> Iterator[ProgramFinding]:
    """Find loops over a sample's elements, and Python generators behind tf.data."""
    for function in _preparing(program):
        for node in ast.walk(function):
            if isinstance(node, ast.For) and _runs_over_elements(node, program):
                yield ProgramFinding(
                    FindingCode.LOOP_IN_DATASET,
                    (node.lineno,),
                    f"a Python loop in {function.name}, which prepares a sample",
                )
                break
    for call in program.calls():
        if names.last(call) == "from_generator" and "tensorflow" in program.frameworks:
            yield ProgramFinding(FindingCode.LOOP_IN_DATASET, (call.lineno,), "tf.data reads from a Python generator")


def _preparing(program: ScriptProgram) -> Iterator[ast.FunctionDef]:
    called = {names.dotted(call.args[0]) for call in program.calls() if names.last(call) in _PY_FUNCTIONS and call.args}
    for node in ast.walk(program.tree):
        if isinstance(node, ast.FunctionDef) and (node.name == "__getitem__" or node.name in called):
            yield node


def _runs_over_elements(loop: ast.For, program: ScriptProgram) -> bool:
    if isinstance(loop.iter, (ast.Tuple, ast.List)) or _NOT_ELEMENTS.search(ast.unparse(loop.iter)):
        return False
    if isinstance(loop.iter, ast.Call) and names.last(loop.iter) == "range" and len(loop.iter.args) == 1:
        count = program.names.value(loop.iter.args[0])
        return not (isinstance(count, int) and count <= _FEW)
    return True
