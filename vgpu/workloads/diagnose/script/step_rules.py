"""Rules about what runs at each step: waits for the card, copies to the card, output, checkpoints."""

import ast
import re
from collections.abc import Iterator
from typing import Final

from vgpu.workloads.diagnose.catalogue import FindingCode
from vgpu.workloads.diagnose.finding import ProgramFinding
from vgpu.workloads.diagnose.script import names
from vgpu.workloads.diagnose.script.program import ScriptProgram
from vgpu.workloads.diagnose.script.step_loops import MODEL, StepBody

_READS: Final = frozenset({"item", "cpu", "numpy", "tolist"})
_WAITS: Final = frozenset({"torch.cuda.synchronize", "torch.accelerator.synchronize"})
_EMPTIES: Final = frozenset({"torch.cuda.empty_cache", "torch.accelerator.empty_cache"})
_LOSS: Final = re.compile(r"(^|_)(loss|acc|accuracy)(es)?(_|$|\d)|loss$", re.IGNORECASE)
_REDUCTIONS: Final = frozenset({"sum", "mean", "max", "min", "argmax", "norm", "result"})
_HOST: Final = frozenset({"np", "numpy", "math", "os", "time", "env"})
_DEVICE: Final = re.compile(r"dev|cuda|gpu|rank", re.IGNORECASE)
_LEVELS: Final = frozenset({"debug", "info", "warning", "error", "log"})
_LOGGER: Final = re.compile(r"(^|\.)_?(log|logger|logging)$", re.IGNORECASE)
_SAVES: Final = frozenset({"save_weights", "save_pretrained", "save_state", "save_checkpoint", "save_model"})
_SAVERS: Final = re.compile(
    r"(^|\.|_)(torch|model|net|checkpoint|ckpt|checkpointer|manager|saver|accelerator)$", re.IGNORECASE
)


def check(program: ScriptProgram) -> Iterator[ProgramFinding]:
    """Judge every inner loop of a script."""
    for body in program.bodies:
        for call in _calls(body):
            for code, what in _defects(program, call):
                yield ProgramFinding(code, (call.lineno,), f"{what} in the loop of line {body.line}")
        yield from _kept_graphs(body) if program.uses_card else ()
    yield from copies(program, blocking_only=True)


def _defects(program: ScriptProgram, call: ast.Call) -> Iterator[tuple[FindingCode, str]]:
    """Yield what a call at each step costs, and what was seen."""
    if program.uses_card and (what := _wait(program, call)):
        yield FindingCode.SYNC_EACH_STEP, what
    if program.full_name(call.func) in _EMPTIES:
        yield FindingCode.EMPTY_CACHE_EACH_STEP, program.full_name(call.func)
    if _is_output(program, call):
        yield FindingCode.PRINT_EACH_STEP, names.dotted(call.func)
    if _saves(call):
        yield FindingCode.SAVE_EACH_STEP, names.dotted(call.func)


def _kept_graphs(body: StepBody) -> Iterator[ProgramFinding]:
    """Find losses that are kept after their backward pass: appended to a list, or added up, as they are."""
    losses = {loss for call in _calls(body) for loss in _trained_by(call)}
    for node in body.nodes:
        match node:
            case ast.Call(func=ast.Attribute(attr="append"), args=[kept], lineno=line):
                how = "is appended to a list"
            case ast.AugAssign(op=ast.Add(), value=kept, lineno=line):
                how = "is added up"
            case _:
                continue
        if (name := ast.unparse(kept)) in losses:
            what = f"{name[:60]} {how} with its graph in the loop of line {body.line}"
            yield ProgramFinding(FindingCode.GRAPH_KEPT, (line,), what)


def copies(program: ScriptProgram, *, blocking_only: bool = False) -> Iterator[ProgramFinding]:
    """Find the copies of batches to the card."""
    for body in program.bodies if program.uses_card else ():
        for call in _calls(body):
            if _copies(program, call) and not (blocking_only and _is_asynchronous(program, call)):
                yield ProgramFinding(
                    FindingCode.BLOCKING_COPY,
                    (call.lineno,),
                    f"{ast.unparse(call)[:60]} in the loop of line {body.line}",
                )


def _trained_by(call: ast.Call) -> Iterator[str]:
    """Yield the loss of `loss.backward()`, `scaler.scale(loss).backward()`, `accelerator.backward(loss)`."""
    match call:
        case ast.Call(func=ast.Attribute(attr="backward", value=owner), args=given):
            inner = owner.args if isinstance(owner, ast.Call) else []
            yield from (ast.unparse(node) for node in (owner, *inner, *given))


def _calls(body: StepBody) -> Iterator[ast.Call]:
    return (node for node in body.nodes if isinstance(node, ast.Call))


def _wait(program: ScriptProgram, call: ast.Call) -> str:
    """Return what waits for the card; empty where nothing does."""
    if program.full_name(call.func) in _WAITS:
        return program.full_name(call.func)
    match call:
        case ast.Call(func=ast.Attribute(attr=name), args=[]) if name in _READS and names.root(call) not in _HOST:
            return f".{name}()"
        case ast.Call(func=ast.Name(id="float" | "int" as name), args=[value]) if _is_tensor(value):
            return f"{name}()"
    if _is_output(program, call) and any(_is_tensor(value) for value in _shown(call)):
        return "a tensor that is printed"
    return ""


def _is_tensor(value: ast.expr) -> bool:
    """Whether an expression is a result of the card, to judge by its name or by a reduction."""
    match value:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return bool(_LOSS.search(name))
        case ast.Call(func=ast.Attribute(attr=name, value=owner)):
            return name in _REDUCTIONS and names.root(owner) not in _HOST
    return False


def _shown(call: ast.Call) -> Iterator[ast.expr]:
    """Yield what a call prints: its arguments, and what these format."""
    waiting: list[ast.expr] = [*call.args]
    if isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Constant):
        waiting += [keyword.value for keyword in call.keywords]
    while waiting:
        match waiting.pop():
            case ast.JoinedStr(values=values) | ast.Tuple(elts=values):
                waiting += values
            case ast.FormattedValue(value=value):
                waiting.append(value)
            case ast.BinOp(op=ast.Mod(), right=right):
                waiting.append(right)
            case ast.Call(func=ast.Attribute(attr="format"), args=args, keywords=keywords):
                waiting += [*args, *(keyword.value for keyword in keywords)]
            case ast.expr() as other:
                yield other


def _is_output(program: ScriptProgram, call: ast.Call) -> bool:
    name = program.full_name(call.func)
    if name in ("print", "tensorflow.print", "sys.stdout.write", "sys.stderr.write", "tqdm.tqdm.write", "tqdm.write"):
        return True
    owner, _, method = names.dotted(call.func).rpartition(".")
    return method in _LEVELS and bool(_LOGGER.search(owner)) and owner != "self"


def _saves(call: ast.Call) -> bool:
    if not isinstance(call.func, ast.Attribute):
        return names.last(call) in _SAVES
    owner = names.dotted(call.func.value)
    return call.func.attr in _SAVES or (call.func.attr == "save" and bool(_SAVERS.search(owner)))


def _copies(program: ScriptProgram, call: ast.Call) -> bool:
    """Whether a call copies something of the batch to the card; models and new tensors are something else."""
    if not isinstance(call.func, ast.Attribute):
        return False
    owner = names.dotted(call.func.value)
    if MODEL.search(owner) or names.root(call.func.value) in program.imported:
        return False
    given = [*call.args, *(keyword.value for keyword in call.keywords if keyword.arg == "device")]
    if call.func.attr == "cuda":
        return True
    if call.func.attr == "type" and len(given) == 1:
        return _is_card_type(program, given[0])
    return call.func.attr == "to" and any(_is_device(argument) for argument in given)


def _is_device(node: ast.expr) -> bool:
    match node:
        case ast.Constant(value=str(text)):
            return bool(_DEVICE.search(text))
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return bool(_DEVICE.search(name))
    return False


def _is_card_type(program: ScriptProgram, node: ast.expr) -> bool:
    if isinstance(node, ast.Name):
        return any("cuda" in ast.unparse(value) for value in program.names.assigned.get(node.id, ()))
    return "cuda" in ast.unparse(node)


def _is_asynchronous(program: ScriptProgram, call: ast.Call) -> bool:
    given = program.names.keywords(call)
    return given is None or ("non_blocking" in given and program.names.value(given["non_blocking"]) is not False)
