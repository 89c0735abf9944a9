"""A class name means one thing in the distribution, and a loop variable is named after what it holds."""

import ast
from collections import defaultdict
from functools import cache

from tests.contract import repository

PACKAGES = ("vgpu/", "extender/", "webhook/", "deviceplugin/", "limiter/", "simgpu/", "cluster/")


@cache
def trees() -> dict[str, ast.Module]:
    paths = [path for path in repository.files() if path.startswith(PACKAGES) and path.endswith(".py")]
    return {path: ast.parse(repository.text_of(path)) for path in paths}


def test_no_two_classes_have_one_name() -> None:
    defined = defaultdict(list)
    for path, tree in trees().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                defined[node.name].append(path)
    twice = {name: paths for name, paths in defined.items() if len(paths) > 1}
    assert not twice


def test_no_loop_variable_is_called_each() -> None:
    found = [
        f"{path}:{node.target.lineno}"
        for path, tree in trees().items()
        for node in ast.walk(tree)
        if isinstance(node, (ast.For, ast.comprehension))
        if isinstance(node.target, ast.Name) and node.target.id == "each"
    ]
    assert not found
