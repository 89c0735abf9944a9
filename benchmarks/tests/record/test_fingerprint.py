"""Fingerprints of source folders: only changed code changes them."""

from pathlib import Path

import pytest

from benchmarks.record import fingerprint

C = '/* doubles */\n#include "a.h"\nint twice(int n) { return 2 * n; } // "x"\nconst char *text = "/* kept */";\n'
PYTHON = '''"""A module."""

import os


def twice(n):
    """Double."""
    if n:  # not 0
        n *= 2
    return n
'''


def of(tmp_path: Path, **files: str) -> str:
    """The fingerprint of a new folder with these files; two underscores stand for a slash, one for a dot."""
    folder = tmp_path / str(len(list(tmp_path.iterdir())))
    for name, text in files.items():
        path = folder / f"{name.replace('__', '/')}".replace("_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return fingerprint.of_folder(folder)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("/* doubles */", "/* returns\n the double */"),
        ("2 * n", "2*n"),
        (" // ", "\n// says "),
        ('#include "a.h"', '#include "common/a.h"\n#include <stdio.h>'),
    ],
)
def test_comments_spaces_and_includes_of_c_do_not_count(tmp_path: Path, old: str, new: str) -> None:
    assert old in C
    assert of(tmp_path, a_c=C) == of(tmp_path, a_c=C.replace(old, new))


@pytest.mark.parametrize(("old", "new"), [("2 *", "3 *"), ("kept", "lost"), ("int twice", "long twice")])
def test_code_and_strings_of_c_count(tmp_path: Path, old: str, new: str) -> None:
    assert old in C
    assert of(tmp_path, a_c=C) != of(tmp_path, a_c=C.replace(old, new))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"""A module."""', '"""A module.\n\nIt has\n    two parts.\n"""'),
        ('"""Double."""', '"""Return the double."""'),
        ("  # not 0", ""),
        ("import os", "from os import (\n    path,\n    sep,\n)\nimport sys"),
        ("n *= 2", "n*=2"),
    ],
)
def test_comments_docstrings_and_imports_of_python_do_not_count(tmp_path: Path, old: str, new: str) -> None:
    assert old in PYTHON
    assert of(tmp_path, a_py=PYTHON) == of(tmp_path, a_py=PYTHON.replace(old, new))


@pytest.mark.parametrize(("old", "new"), [("*= 2", "*= 3"), ("        n *=", "    n *="), ("if n", "if not n")])
def test_code_and_indentation_of_python_count(tmp_path: Path, old: str, new: str) -> None:
    assert old in PYTHON
    assert of(tmp_path, a_py=PYTHON) != of(tmp_path, a_py=PYTHON.replace(old, new))


def test_moved_files_do_not_count_and_new_ones_do(tmp_path: Path) -> None:
    assert of(tmp_path, a_c=C, b_py=PYTHON) == of(tmp_path, sub__z_c=C, b_py=PYTHON)
    assert of(tmp_path, a_c=C) != of(tmp_path, a_c=C, b_py=PYTHON)
    assert of(tmp_path, a_c=C) != of(tmp_path)


def test_a_folder_that_is_gone_has_another_fingerprint(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.c").write_text(C)
    found = fingerprint.of_folders(tmp_path, ["src", "gone"])
    assert found["src"] != found["gone"]
