"""Comments, docstrings and documents name only paths that exist."""

import pytest

from tests.contract import repository
from tests.contract.named_paths import Tree, named_paths
from tests.contract.prose import prose


@pytest.fixture(scope="module")
def missing() -> dict[str, list[str]]:
    """Each path that is named and does not exist, and where it is named."""
    tree = Tree(repository.files())
    found: dict[str, list[str]] = {}
    for file in repository.checked_files():
        for passage in prose(file, repository.text_of(file)):
            for named in named_paths(passage.text, tree.folder_names_near(file)):
                if not tree.has(named, file):
                    found.setdefault(named.path, []).append(f"{file}:{passage.line + named.line}: {named.path}")
    return found


def test_every_named_path_exists(missing: dict[str, list[str]]) -> None:
    exceptions = repository.settings()["path-exceptions"]
    wrong = [line for path, lines in missing.items() if path not in exceptions for line in lines]
    assert not wrong, (
        "these files or folders do not exist; correct their names, or give a reason in "
        "[tool.vgpushare.path-exceptions] of pyproject.toml:\n" + "\n".join(sorted(wrong))
    )


def test_every_exception_is_needed(missing: dict[str, list[str]]) -> None:
    """An exception for a path that no text names any more would hide a later mistake."""
    unused = repository.settings()["path-exceptions"].keys() - missing.keys()
    assert not unused, f"remove from [tool.vgpushare.path-exceptions] of pyproject.toml: {sorted(unused)}"
