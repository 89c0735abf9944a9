"""What an expression stands for, where the script says it: constants, options' defaults, dictionaries of arguments."""

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

UNKNOWN: Final = object()  # a value that the script does not say
_MAX_HOPS: Final = 8  # names that stand for names
_MAX_VALUES: Final = 32  # that are kept of a name
_MAX_LINKS: Final = 64  # attributes, calls and subscripts of one expression

Keywords = Mapping[str, ast.expr]


def dotted(node: ast.AST) -> str:
    """Return the names of an expression, joined by dots; calls and subscripts are left out."""
    links = _links(node)
    parts = [link.attr for link in links if isinstance(link, ast.Attribute)]
    first = [links[-1].id] if isinstance(links[-1], ast.Name) else []
    return ".".join([*first, *reversed(parts)])


def root(node: ast.AST) -> str:
    """Return the name with which an expression begins: `x` for `x[0].to(device)`; empty where there is none."""
    first = _links(node)[-1]
    return first.id if isinstance(first, ast.Name) else ""


def _links(node: ast.AST) -> list[ast.AST]:
    """Return an expression and what it is taken of, to its beginning: `x[0].to(d)`, `x[0].to`, `x[0]`, `x`."""
    links = [node]
    while isinstance(node, (ast.Attribute, ast.Call, ast.Subscript)) and len(links) < _MAX_LINKS:
        node = node.func if isinstance(node, ast.Call) else node.value
        links.append(node)
    return links


def last(call: ast.Call) -> str:
    """Return the last part of the name of what is called: `DataLoader` for `torch.utils.data.DataLoader(...)`."""
    match call.func:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
    return ""


def calls(tree: ast.AST) -> Iterator[ast.Call]:
    """Yield every call below a node."""
    return (node for node in ast.walk(tree) if isinstance(node, ast.Call))


@dataclass(frozen=True, slots=True)
class Names:
    """What names and options stand for.

    Attributes:
        assigned: the expressions that are assigned to each name, anywhere in the script, up to a bound.
        options: defaults of command line options, by the name of their attribute.
        updates: dictionaries that are merged into a name by `name.update(...)`, up to a bound.
    """

    assigned: Mapping[str, tuple[ast.expr, ...]]
    options: Mapping[str, object]
    updates: Mapping[str, tuple[ast.expr, ...]]

    @classmethod
    def of(cls, tree: ast.Module) -> "Names":
        """Collect them from a script."""
        assigned: dict[str, tuple[ast.expr, ...]] = {}
        updates: dict[str, tuple[ast.expr, ...]] = {}
        for node in ast.walk(tree):
            for name, value in _assignments(node):
                assigned[name] = (*assigned.get(name, ()), value)[:_MAX_VALUES]
            if isinstance(node, ast.Call) and last(node) == "update" and len(node.args) == 1:
                name = root(node.func)
                updates[name] = (*updates.get(name, ()), node.args[0])[:_MAX_VALUES]
        return cls(assigned, _options(tree), updates)

    def value(self, node: ast.expr | None) -> object:
        """Return the constant that an expression stands for, or UNKNOWN."""
        for _ in range(_MAX_HOPS):
            match node:
                case ast.Constant(value=constant):
                    return constant
                case ast.Call(func=ast.Name(id="int"), args=[inner]):
                    node = inner
                case ast.Attribute(value=ast.Name(), attr=name) if name in self.options:
                    return self.options[name]
                case ast.Name(id=name) if len(self.assigned.get(name, ())) == 1:
                    node = self.assigned[name][0]
                case _:
                    return UNKNOWN
        return UNKNOWN

    def keywords(self, call: ast.Call) -> Keywords | None:
        """Return a call's named arguments, those of `**name` too; None where a dictionary cannot be followed."""
        found: dict[str, ast.expr] = {}
        for keyword in call.keywords:
            if keyword.arg is not None:
                found[keyword.arg] = keyword.value
            elif (merged := self._dictionary(keyword.value, set())) is not None:
                found.update(merged)
            else:
                return None
        return found

    def _dictionary(self, node: ast.expr, seen: set[str], hops: int = 0) -> dict[str, ast.expr] | None:
        """Return the entries of a dictionary; None where they cannot be followed, as through a name that comes again.

        Of two branches the fuller one counts, which a card's program takes. `seen` are the names so far.
        """
        match node:
            case ast.Dict(keys=keys, values=values):
                texts = [key.value if isinstance(key, ast.Constant) else None for key in keys]
                return {str(key): value for key, value in zip(texts, values, strict=True) if key is not None}
            case ast.Call(func=ast.Name(id="dict"), args=[]):
                return {keyword.arg: keyword.value for keyword in node.keywords if keyword.arg}
            case ast.IfExp(body=body, orelse=other) if hops < _MAX_HOPS:
                both = [self._dictionary(body, seen, hops + 1), self._dictionary(other, seen, hops + 1)]
                return max((entries for entries in both if entries is not None), key=len, default=None)
            case ast.Name(id=name) if hops < _MAX_HOPS and name in self.assigned and name not in seen:
                seen.add(name)
                return self._merged([*self.assigned[name], *self.updates.get(name, ())], seen, hops + 1)
        return None

    def _merged(self, parts: list[ast.expr], seen: set[str], hops: int) -> dict[str, ast.expr] | None:
        """Return the entries of several dictionaries, of which later ones count; None where one is none."""
        merged: dict[str, ast.expr] = {}
        for part in parts:
            found = self._dictionary(part, seen, hops)
            if found is None:
                return None
            merged |= found
        return merged


def _assignments(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    match node:
        case ast.Assign(targets=targets, value=value):
            for target in targets:
                yield from _pairs(target, value)
        case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
            yield name, value
        case ast.NamedExpr(target=ast.Name(id=name), value=value):
            yield name, value


def _pairs(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    match target, value:
        case ((ast.Name(id=name) | ast.Attribute(attr=name)), _):
            yield name, value
        case ast.Tuple(elts=targets), ast.Tuple(elts=values) if len(targets) == len(values):
            for element, its in zip(targets, values, strict=True):
                yield from _pairs(element, its)
        case ast.Tuple(elts=targets), _:
            for element in targets:
                yield from _pairs(element, value)


def _options(tree: ast.Module) -> dict[str, object]:
    found: dict[str, object] = {}
    for call in calls(tree):
        if last(call) == "add_argument":
            given = {keyword.arg: keyword.value for keyword in call.keywords}
            for name in _option_names(call, given):
                found[name] = _default(given)
        elif last(call) == "set_defaults":
            found |= {keyword.arg: _constant(keyword.value) for keyword in call.keywords if keyword.arg}
    return found


def _option_names(call: ast.Call, given: Mapping[str | None, ast.expr]) -> list[str]:
    if "dest" in given:
        return [str(_constant(given["dest"]))]
    texts = [arg.value for arg in call.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str)]
    return [text.lstrip("-").replace("-", "_") for text in texts]


def _default(given: Mapping[str | None, ast.expr]) -> object:
    if "default" in given:
        return _constant(given["default"])
    return {"store_true": False, "store_false": True}.get(str(_constant(given.get("action"))), UNKNOWN)


def _constant(node: ast.expr | None) -> object:
    return node.value if isinstance(node, ast.Constant) else UNKNOWN
