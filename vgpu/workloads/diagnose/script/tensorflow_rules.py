"""Rules about pipelines of tf.data and callbacks of Keras."""

import ast
from collections.abc import Iterator
from typing import Final

from vgpu.workloads.diagnose.catalogue import FindingCode
from vgpu.workloads.diagnose.finding import ProgramFinding
from vgpu.workloads.diagnose.script import names, step_loops
from vgpu.workloads.diagnose.script.program import ScriptProgram

_SOURCES: Final = frozenset(
    {"from_tensor_slices", "from_generator", "list_files", "TFRecordDataset", "TextLineDataset"}
)
_MAX_NAMES: Final = 100  # that are followed of a pipeline


def check(program: ScriptProgram) -> Iterator[ProgramFinding]:
    """Judge the pipelines of a TensorFlow script."""
    if "tensorflow" not in program.frameworks:
        return
    pipelines = _Pipelines(program)
    for call in program.calls():
        if _is_serial_map(call):
            yield ProgramFinding(FindingCode.NO_WORKERS, (_line(call),), "map without num_parallel_calls")
        elif names.last(call) == "fit" and len(call.args) == 1 and pipelines.lacks_prefetch(call.args[0]):
            yield ProgramFinding(FindingCode.NO_PREFETCH, (call.lineno,), "fit reads a pipeline without prefetch")
        elif names.last(call) == "ModelCheckpoint" and _saves_each_batch(program, call):
            yield ProgramFinding(FindingCode.SAVE_EACH_STEP, (call.lineno,), "ModelCheckpoint writes after every batch")
    for body in program.bodies:
        if body.iterable is not None and pipelines.lacks_prefetch(step_loops.unwrapped(body.iterable)):
            yield ProgramFinding(FindingCode.NO_PREFETCH, (body.line,), "the loop reads a pipeline without prefetch")


def _line(call: ast.Call) -> int:
    """Return the line of a method's name, which in a chain of calls is not that of the chain's beginning."""
    return (call.func.end_lineno or call.lineno) if isinstance(call.func, ast.Attribute) else call.lineno


def _is_serial_map(call: ast.Call) -> bool:
    if not isinstance(call.func, ast.Attribute) or call.func.attr != "map" or len(call.args) != 1:
        return False
    receiver = call.func.value
    if isinstance(receiver, ast.Subscript) or not isinstance(call.args[0], (ast.Lambda, ast.Name, ast.Attribute)):
        return False
    return not {keyword.arg for keyword in call.keywords} & {"num_parallel_calls", "batched", None}


def _saves_each_batch(program: ScriptProgram, call: ast.Call) -> bool:
    given = program.names.keywords(call) or {}
    frequency = program.names.value(given.get("save_freq"))
    return isinstance(frequency, int) and frequency == 1


class _Pipelines:
    """What pipelines consist of, through the names and functions of the script that stand for them."""

    def __init__(self, program: ScriptProgram) -> None:
        self._assigned = program.names.assigned
        self._functions: dict[str, list[ast.FunctionDef]] = {}
        for node in ast.walk(program.tree):
            if isinstance(node, ast.FunctionDef):
                self._functions.setdefault(node.name, []).append(node)

    def lacks_prefetch(self, source: ast.expr) -> bool:
        """Whether a pipeline begins in this script, and no part of it prefetches."""
        links = self._links(source)
        return bool(_SOURCES.intersection(links)) and "prefetch" not in links

    def _links(self, source: ast.expr) -> set[str]:
        """Return the methods of a pipeline, of all values of the names and functions in it, up to a bound."""
        links, waiting, seen = set[str](), [source], set[tuple[str, bool]]()
        while waiting and len(seen) < _MAX_NAMES:
            node = waiting.pop()
            while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                links.add(node.func.attr)
                node = node.func.value
            called = isinstance(node, ast.Call)
            name = node.func if isinstance(node, ast.Call) else node
            if isinstance(name, ast.Name) and (name.id, called) not in seen:
                seen.add((name.id, called))
                waiting += self._returned(name.id) if called else self._assigned.get(name.id, ())
        return links

    def _returned(self, name: str) -> Iterator[ast.expr]:
        for function in self._functions.get(name, ()):
            yield from (
                statement.value
                for statement in ast.walk(function)
                if isinstance(statement, ast.Return) and statement.value
            )
