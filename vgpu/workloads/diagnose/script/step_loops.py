"""Which statements run for each batch: bodies of inner loops, and methods that a framework calls for each batch.

A loop is an inner loop if it reads batches (its iterable is named like a loader), or if its body trains or evaluates:
calls `backward`, an optimizer's `step`, a model. A function that trains for one step and that a loop calls counts too.
A nested inner loop does not make the outer loop one. Statements under a condition on the step's number, in an
exception's handler, or under a check for NaN run seldom and are left out.
"""

import ast
import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from vgpu.workloads.diagnose.script import names

LOADER: Final = re.compile(r"(loader|batches|dataset|iterator)\w*$|(^|_)(dl|ds)$|^dl", re.IGNORECASE)
MODEL: Final = re.compile(
    r"^(self\.)?(\w*_)?(model|net|network|policy|encoder|decoder|generator|discriminator|critic|actor|transformer)[A-Z0-9]?$"
    r"|^net[A-Z]$",
    re.IGNORECASE,
)
STEP_FUNCTION: Final = re.compile(r"(^|_)(train|training|valid|validation|val|eval|test|distributed)_?(step|batch)$")
FRAMEWORK_STEPS: Final = frozenset({"training_step", "validation_step", "test_step", "predict_step"})
_PREPARES: Final = re.compile(r"^_?(save|load|set|get|build|make|create|init|setup|define|prepare|wrap)_")
_SELDOM: Final = re.compile(r"isnan|isinf|isfinite|verbose|debug", re.IGNORECASE)
_WRAPPERS: Final = frozenset(
    {"enumerate", "tqdm", "trange", "zip", "iter", "track", "log_every", "take", "cycle", "islice", "Bar"}
)

Loop = ast.For | ast.AsyncFor | ast.While
Function = ast.FunctionDef | ast.AsyncFunctionDef
_LOOPS: Final = (ast.For, ast.AsyncFor, ast.While)
_FUNCTIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True, slots=True)
class StepBody:
    """Statements that run for each batch.

    Attributes:
        line: where the loop or method begins.
        batch: names that hold the batch.
        nodes: every node that runs at each step.
        iterable: what the loop runs over; None for a method.
    """

    line: int
    batch: frozenset[str]
    nodes: tuple[ast.AST, ...]
    iterable: ast.expr | None = field(default=None)


def find(tree: ast.Module, loaders: frozenset[str]) -> list[StepBody]:
    """Return the bodies that run for each batch; `loaders` are names that hold DataLoaders."""
    inner = {id(loop): loop for loop in _loops(tree) if _is_inner(loop, loaders)}
    counted = _counted(tree)
    bodies = [_of_loop(loop, inner.keys(), counted.get(id(loop), ())) for loop in inner.values()]
    functions = {id(step_function): step_function for step_function in _step_functions(tree, inner.keys())}
    return [
        *bodies,
        *map(_of_method, _framework_methods(tree)),
        *(_of_function(function, functions) for function in functions.values()),
    ]


def unwrapped(iterable: ast.expr) -> ast.expr:
    """Return the loader in `enumerate(tqdm(loader))`."""
    while isinstance(iterable, ast.Call) and names.last(iterable) in _WRAPPERS:
        inner = iterable.args[0] if iterable.args else getattr(iterable.func, "value", None)
        if names.last(iterable) == "take" and isinstance(iterable.func, ast.Attribute):
            inner = iterable.func.value
        if not isinstance(inner, ast.expr):
            return iterable
        iterable = inner
    return iterable


def _loops(tree: ast.AST) -> Iterator[Loop]:
    return (node for node in ast.walk(tree) if isinstance(node, Loop))


def _outside_loops(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """Yield nodes and what is below them, down to the first loops."""
    waiting = list(nodes)
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, Loop):
            waiting += ast.iter_child_nodes(node)


def _framework_methods(tree: ast.Module) -> Iterator[Function]:
    classes = (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    return (
        member
        for one in classes
        for member in one.body
        if isinstance(member, Function) and member.name in FRAMEWORK_STEPS
    )


def _step_functions(tree: ast.Module, inner: Collection[int]) -> list[Function]:
    """Return the functions that train for one step and that a loop calls, as programs of one batch do."""
    outermost = (node for node in _outside_loops([tree]) if isinstance(node, Loop))
    called = {call.func.id for loop in outermost for call in names.calls(loop) if isinstance(call.func, ast.Name)}
    with_loops, trains = set[int](), set[int]()
    for node, functions in _within(tree, _FUNCTIONS):
        if id(node) in inner:
            with_loops.update(map(id, functions))
        elif isinstance(node, ast.Call) and names.last(node) == "backward":
            trains.update(map(id, functions))
    wanted = trains - with_loops
    return [
        node for node in ast.walk(tree) if isinstance(node, Function) and id(node) in wanted and node.name in called
    ]


def _counted(tree: ast.Module) -> dict[int, set[str]]:
    """Return the names that the script adds something to in each loop, by the loop's identity."""
    found: dict[int, set[str]] = {}
    for node, loops in _within(tree, _LOOPS):
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            for loop in loops:
                found.setdefault(id(loop), set()).add(node.target.id)
    return found


def _within(tree: ast.AST, kinds: tuple[type[ast.AST], ...]) -> Iterator[tuple[ast.AST, tuple[ast.AST, ...]]]:
    """Yield every node with the nodes of these kinds around it."""
    waiting: list[tuple[ast.AST, tuple[ast.AST, ...]]] = [(tree, ())]
    while waiting:
        node, around = waiting.pop()
        yield node, around
        inside = (*around, node) if isinstance(node, kinds) else around
        waiting += ((iter_child_node, inside) for iter_child_node in ast.iter_child_nodes(node))


def _is_inner(loop: Loop, loaders: frozenset[str]) -> bool:
    if not isinstance(loop, ast.While) and _reads_batches(loop, loaders):
        return True
    return any(isinstance(node, ast.Call) and _is_step(node) for node in _outside_loops(loop.body))


def _reads_batches(loop: ast.For | ast.AsyncFor, loaders: frozenset[str]) -> bool:
    source = unwrapped(loop.iter)
    name = names.dotted(source)
    called = isinstance(source, ast.Call)
    return not called and (name in loaders or bool(name and LOADER.search(name.rpartition(".")[2])))


def _is_step(call: ast.Call) -> bool:
    name = names.dotted(call.func)
    owner, _, method = name.rpartition(".")
    if method == "backward" or (method == "step" and re.search(r"optim|opt\b|scaler", owner, re.IGNORECASE)):
        return True
    return bool(STEP_FUNCTION.search(method) or (MODEL.search(name) and not _PREPARES.search(method)))


def _of_loop(loop: Loop, inner: Iterable[int], counted: Iterable[str]) -> StepBody:
    """`counted`: names that the loop adds something to. They and its targets count the steps."""
    target = () if isinstance(loop, ast.While) else _names(loop.target)
    nodes = tuple(_each_step(loop.body, frozenset((*counted, *target)), frozenset(inner)))
    iterable = None if isinstance(loop, ast.While) else loop.iter
    return StepBody(loop.lineno, _derived(frozenset(target), nodes), nodes, iterable)


def _of_method(method: Function) -> StepBody:
    parameters = frozenset(arg.arg for arg in method.args.args[1:2])
    nodes = tuple(_each_step(method.body, frozenset(arg.arg for arg in method.args.args[2:3]), frozenset()))
    return StepBody(method.lineno, _derived(parameters, nodes), nodes)


def _of_function(function: Function, others: Iterable[int]) -> StepBody:
    nodes = tuple(_each_step(function.body, frozenset(), frozenset(others)))
    return StepBody(function.lineno, _derived(frozenset(), nodes), nodes)


def _derived(batch: frozenset[str], nodes: tuple[ast.AST, ...]) -> frozenset[str]:
    """Add the names that are assigned from the batch, or from `next(...)`."""
    found = set(batch)
    for node in nodes:
        if isinstance(node, ast.Assign) and (found & set(_names(node.value)) or "next" in _names(node.value)):
            found |= {name for target in node.targets for name in _names(target)}
    return frozenset(found)


def _each_step(body: Iterable[ast.stmt], counters: frozenset[str], inner: frozenset[int]) -> Iterator[ast.AST]:
    """Yield what runs at each step, from the outside in; `inner` loops and functions are bodies of their own."""
    waiting: list[ast.AST] = list(reversed(list(body)))
    while waiting:
        node = waiting.pop()
        if id(node) in inner or isinstance(node, (ast.ExceptHandler, ast.ClassDef)):
            continue
        if isinstance(node, ast.If) and _is_seldom(node.test, counters):
            waiting += reversed(node.orelse)
            continue
        yield node
        waiting += reversed(list(ast.iter_child_nodes(node)))


def _is_seldom(test: ast.expr, counters: frozenset[str]) -> bool:
    for node in ast.walk(test):
        match node:
            case ast.BinOp(op=ast.Mod()):
                return True
            case ast.Compare(left=ast.Name(id=name), ops=[ast.Eq()]) if name in counters:
                return True
            case ast.Name(id=name) | ast.Attribute(attr=name) if _SELDOM.search(name):
                return True
    return False


def _names(node: ast.AST) -> list[str]:
    return [name.id for name in ast.walk(node) if isinstance(name, ast.Name)]
