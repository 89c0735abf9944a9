"""What the rules ask about a script: its frameworks, its names, its inner loops, and whether it uses a card."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from vgpu.workloads.diagnose.script import names, step_loops
from vgpu.workloads.diagnose.script.names import Names
from vgpu.workloads.diagnose.script.step_loops import StepBody

_FRAMEWORKS: Final = {
    "torch": "torch",
    "torchvision": "torch",
    "torchtext": "torch",
    "lightning": "lightning",
    "pytorch_lightning": "lightning",
    "transformers": "transformers",
    "accelerate": "accelerate",
    "tensorflow": "tensorflow",
    "keras": "tensorflow",
}
_CARD: Final = re.compile(r"^(cuda|gpu|mps|xpu)", re.IGNORECASE)
_PLACES_BY_ITSELF: Final = frozenset({"lightning", "accelerate", "transformers", "tensorflow"})


@dataclass(frozen=True, slots=True)
class ScriptProgram:
    """A script as the rules read it.

    Attributes:
        frameworks: which of torch, lightning, transformers, accelerate and tensorflow it imports.
        imported: what each imported name stands for, in full.
        uses_card: whether it names a card, or its framework takes one by itself.
        bodies: what runs for each batch.
    """

    tree: ast.Module
    names: Names
    frameworks: frozenset[str]
    imported: dict[str, str]
    uses_card: bool
    bodies: tuple[StepBody, ...]

    @classmethod
    def of(cls, tree: ast.Module) -> "ScriptProgram":
        """Read a tree."""
        imported = dict(_imports(tree))
        frameworks = frozenset(
            _FRAMEWORKS[top] for full in imported.values() if (top := full.partition(".")[0]) in _FRAMEWORKS
        )
        known = Names.of(tree)
        loaders = frozenset(name for name, values in known.assigned.items() if any(map(is_loader, values)))
        uses_card = bool(frameworks & _PLACES_BY_ITSELF) or any(map(_names_card, ast.walk(tree)))
        return cls(tree, known, frameworks, imported, uses_card, tuple(step_loops.find(tree, loaders)))

    def calls(self) -> Iterator[ast.Call]:
        """Yield every call of the script."""
        return names.calls(self.tree)

    def full_name(self, node: ast.AST) -> str:
        """Return the dotted name of an expression, with an imported first part in full."""
        first, dot, rest = names.dotted(node).partition(".")
        return self.imported.get(first, first) + dot + rest


def is_loader(node: ast.AST) -> bool:
    """Whether an expression creates a PyTorch DataLoader."""
    return isinstance(node, ast.Call) and names.last(node) == "DataLoader"


def _imports(tree: ast.Module) -> Iterator[tuple[str, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for name in node.names:
                yield (
                    name.asname or name.name.partition(".")[0],
                    name.name if name.asname else name.name.partition(".")[0],
                )
        elif isinstance(node, ast.ImportFrom):
            for name in node.names:
                yield name.asname or name.name, f"{node.module or ''}.{name.name}"


def _names_card(node: ast.AST) -> bool:
    match node:
        case ast.Constant(value=str(text)):
            return bool(_CARD.match(text))
        case ast.Attribute(attr="cuda" | "accelerator"):
            return True
        case ast.arg(arg="device") | ast.Call(func=ast.Attribute(attr="to"), args=[ast.Name(id="device")]):
            return True
    return False
