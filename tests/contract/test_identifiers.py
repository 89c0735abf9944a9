"""Identifiers in backticks in comments, docstrings and documents exist."""

import ctypes
import os
import pkgutil
import re
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
import yaml

from limiter.build import headers
from tests.contract import repository
from tests.contract.named_identifiers import SPAN, WORD, Code, code_words, named_identifiers
from tests.contract.prose import prose

pytestmark = pytest.mark.timeout(240)  # the fixture reads every file of the project: 15 s on an idle machine

NO_CODE = re.compile(r"\.(png|svg|pem|sum|lock)$|^benchmarks/results/|^LICENSE$")
FROM_CODE = (
    "docs/reference.md",
    "docs/metrics.md",
)  # other tests hold these pages to the code, which composes the names
CHART_VALUES = "manifests/helm/vgpushare/values.yaml"
NVIDIA = ("cuda.h", "cuda_runtime_api.h", "nvml.h")
OF_NVIDIA = re.compile(r"\b(?:cu|CU|nvml|NVML)\w+")


def values_of_chart(values: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    """Yield the values of the Helm chart by their paths, as `--set` takes them."""
    for name, value in values.items():
        yield f"{prefix}{name}"
        if isinstance(value, Mapping):
            yield from values_of_chart(value, f"{prefix}{name}.")


def words_of_others() -> Iterator[str]:
    """Yield the names of NVIDIA's headers, those of the generated pages, and the chart's values."""
    yield from values_of_chart(yaml.safe_load(repository.text_of(CHART_VALUES)))
    for path in FROM_CODE:
        for span in SPAN.findall(repository.text_of(path)):
            yield from WORD.findall(span)
    for folder in headers.FOLDERS:
        for header in headers.folder(folder).glob("*.h"):
            if header.name in NVIDIA:
                yield from OF_NVIDIA.findall(header.read_text())


def is_of_the_system(name: str) -> bool:
    """Whether the C library has the function, or Python's standard library the name."""
    function = name.removesuffix("()")
    if hasattr(ctypes.CDLL(None), function) or hasattr(os, function):
        return True
    if function.partition(".")[0] not in sys.stdlib_module_names:
        return False
    try:
        pkgutil.resolve_name(function)
    except (AttributeError, ImportError):
        return False
    return True


@pytest.fixture(scope="module")
def missing() -> dict[str, list[str]]:
    """Each identifier that is named and does not exist, and where it is named."""
    paths = [path for path in repository.files() if not NO_CODE.search(path)]
    code = Code({path: code_words(path, repository.text_of(path)) for path in paths}, words_of_others())
    found: dict[str, list[str]] = {}
    for file in repository.checked_files():
        for passage in prose(file, repository.text_of(file)):
            for named in named_identifiers(passage.text):
                if not code.has(named.text, file, passage.text) and not is_of_the_system(named.text):
                    found.setdefault(named.text, []).append(f"{file}:{passage.line + named.line}: `{named.text}`")
    return found


def foreign_names() -> set[str]:
    return {name for names in repository.settings()["foreign-names"].values() for name in names}


def test_every_identifier_in_backticks_exists(missing: dict[str, list[str]]) -> None:
    wrong = [line for name, lines in missing.items() if name not in foreign_names() for line in lines]
    assert not wrong, (
        "no code has these identifiers; correct them, or say in [tool.vgpushare.foreign-names] of pyproject.toml whose "
        "they are:\n" + "\n".join(sorted(wrong))
    )


def test_every_foreign_name_is_needed(missing: dict[str, list[str]]) -> None:
    """A row for a name that no text names any more would hide a later mistake."""
    unused = foreign_names() - missing.keys()
    assert not unused, f"remove from [tool.vgpushare.foreign-names] of pyproject.toml: {sorted(unused)}"


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("`charge`, `usage.of_pod` and `turn_judge()`", ["charge", "usage.of_pod", "turn_judge()"]),
        ("`make run`, `charge.c`, `--idle`, `a: b`, `8Gi`, ``x``, charge", []),
        ("```sh\n`charge`\n```\n`count`", ["count"]),
    ],
)
def test_spans_that_name_an_identifier(text: str, names: list[str]) -> None:
    assert [named.text for named in named_identifiers(text)] == names


def test_the_line_of_a_name_is_counted_from_the_start_of_its_text() -> None:
    assert [named.line for named in named_identifiers("```\na\n```\n`one`\n`two`")] == [3, 4]


@pytest.mark.parametrize(
    ("path", "text", "words"),
    [
        ("a/fit.py", '"""Gone."""\nx = 1  # old\n', {"a", "fit", "py", "x"}),
        ("f.py", 'y = "k-z"\nraise E("No room for of_pod")', {"f", "py", "y", "k", "z", "raise", "E", "of_pod"}),
        ("a.c", "int x; /* old */ // older", {"a", "c", "int", "x"}),
        ("a.yaml", "key: value # old", {"a", "yaml", "key", "value"}),
        ("a.md", "old", {"a", "md"}),
    ],
)
def test_words_of_code_are_those_outside_of_comments_and_docstrings(path: str, text: str, words: set[str]) -> None:
    assert code_words(path, text) == words


CODE = Code(
    {
        "vgpu/usage.py": {"of_pod", "Usage"},
        "vgpu/__init__.py": {"version"},
        "extender/bind.py": {"bind", "context", "stop"},
        "limiter/src/charge.c": {"charge_new", "yield_turn"},
        "simgpu/card.c": {"card_queue"},
    },
    {"cuMemAlloc"},
)


@pytest.mark.parametrize(
    ("name", "file", "exists"),
    [
        ("Usage", "docs/guide.md", True),
        ("charge_new()", "docs/guide.md", True),
        ("charge_", "docs/guide.md", True),
        ("charge_old", "docs/guide.md", False),
        ("usage.of_pod", "docs/guide.md", True),
        ("vgpu.Usage", "docs/guide.md", True),
        ("usage.bind", "docs/guide.md", False),
        ("context.stop", "extender/bind.py", True),
        ("cuMemAlloc", "limiter/src/charge.c", True),
        ("yield_turn", "limiter/src/charge.c", True),
        ("card_queue", "limiter/src/charge.c", False),
        ("of_pod", "limiter/src/charge.c", False),
    ],
)
def test_which_identifiers_exist(name: str, file: str, exists: bool) -> None:
    assert CODE.has(name, file) is exists


def test_a_comment_of_c_may_name_what_a_python_file_has() -> None:
    assert CODE.has("of_pod", "limiter/src/charge.c", "as `of_pod` in vgpu/usage.py")
    assert not CODE.has("of_node", "limiter/src/charge.c", "as `of_node` in vgpu/usage.py")


def test_names_of_the_system() -> None:
    assert is_of_the_system("fallocate")
    assert is_of_the_system("ssl.SSLSocket.getpeercert")
    assert not is_of_the_system("ssl.SSLSocket.gone")
    assert not is_of_the_system("gone_function()")
