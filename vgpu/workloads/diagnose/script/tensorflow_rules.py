"""Rules about pipelines of tf.data and callbacks of Keras."""

import ast
from collections.abc import Iterator
from typing import Final

from vgpu.workloads.diagnose.catalogue import Code
from vgpu.workloads.diagnose.finding import Finding
from vgpu.workloads.diagnose.script import names, step_loops
from vgpu.workloads.diagnose.script.program import Program

_SOURCES: Final = frozenset(
    {"from_tensor_slices", "from_generator", "list_files", "TFRecordDataset", "TextLineDataset"}
)
_MAX_HOPS: Final = 8


def check(program: Program) -> Iterator[Finding]:
    """Judge the pipelines of a TensorFlow script."""
    if "tensorflow" not in program.frameworks:
        return
    for call in program.calls():
        if _is_serial_map(call):
            yield Finding(Code.NO_WORKERS, (_line(call),), "map without num_parallel_calls")
        elif names.last(call) == "fit" and len(call.args) == 1 and _lacks_prefetch(program, call.args[0]):
            yield Finding(Code.NO_PREFETCH, (call.lineno,), "fit reads a pipeline without prefetch")
        elif names.last(call) == "ModelCheckpoint" and _saves_each_batch(program, call):
            yield Finding(Code.SAVE_EACH_STEP, (call.lineno,), "ModelCheckpoint writes after every batch")
    for body in program.bodies:
        if body.iterable is not None and _lacks_prefetch(program, step_loops.unwrapped(body.iterable)):
            yield Finding(Code.NO_PREFETCH, (body.line,), "the loop reads a pipeline without prefetch")


def _line(call: ast.Call) -> int:
    """Return the line of a method's name, which in a chain of calls is not that of the chain's beginning."""
    return (call.func.end_lineno or call.lineno) if isinstance(call.func, ast.Attribute) else call.lineno


def _is_serial_map(call: ast.Call) -> bool:
    if not isinstance(call.func, ast.Attribute) or call.func.attr != "map" or len(call.args) != 1:
        return False
    receiver = call.func.value
    if isinstance(receiver, ast.Subscript) or not isinstance(call.args[0], (ast.Lambda, ast.Name, ast.Attribute)):
        return False
    return not {each.arg for each in call.keywords} & {"num_parallel_calls", "batched", None}


def _saves_each_batch(program: Program, call: ast.Call) -> bool:
    given = program.names.keywords(call) or {}
    frequency = program.names.value(given.get("save_freq"))
    return isinstance(frequency, int) and frequency == 1


def _lacks_prefetch(program: Program, source: ast.expr) -> bool:
    """Whether a pipeline begins in this script, and no part of it prefetches."""
    links = list(_links(program, source, 0))
    return bool(_SOURCES.intersection(links)) and "prefetch" not in links


def _links(program: Program, node: ast.expr, hops: int) -> Iterator[str]:
    """Yield the methods of a pipeline, through names that it was assigned to and functions that return it."""
    while hops <= _MAX_HOPS:
        match node:
            case ast.Call(func=ast.Attribute(value=receiver, attr=name)):
                yield name
                node = receiver
            case ast.Call(func=ast.Name(id=name)):
                for value in _returned(program, name):
                    yield from _links(program, value, hops + 1)
                return
            case ast.Name(id=name):
                for value in program.names.assigned.get(name, ()):
                    yield from _links(program, value, hops + 2)
                return
            case _:
                return


def _returned(program: Program, name: str) -> Iterator[ast.expr]:
    for node in ast.walk(program.tree):
        if isinstance(node, ast.FunctionDef) and node.name == name:
            yield from (each.value for each in ast.walk(node) if isinstance(each, ast.Return) and each.value)
