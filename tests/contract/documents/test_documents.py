"""Every link of every document leads somewhere, and every command, manifest and piece of code names what exists.

`make e2e` runs the commands of the tutorial; `python -m tests.contract.documents` lists which commands are only read.
"""

import re
import tomllib
from functools import cache
from posixpath import dirname, join, normpath

import pytest
import yaml

from tests.contract import repository
from tests.contract.documents import (
    manifests,
    markdown,
    pages,
    programs,
    python_code,
    python_modules,
    typer_commands,
)
from tests.contract.documents.pages import Page
from tests.contract.named_paths import Tree

PAGES = pages.pages()
TODAY = [page for page in PAGES if not page.is_of_its_time]
LANGUAGES = {"sh", "console", "yaml", "json", "toml", "python", "text"}
OTHERS_OPTIONS = {
    "--default-runtime", "--gpu-driver", "--gpu-memory-utilization", "--grace-period", "--kube-scheduler-arg", "--now",
    "--scheduler-config-file",
}  # of kubectl, k3s, AKS, vLLM and the cluster autoscaler  # fmt: skip

SLOW = ("benchmarks/README.md",)  # every program that is named there imports much before it reads its arguments

every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.path)
every_page_of_today = pytest.mark.parametrize("page", TODAY, ids=lambda page: page.path)


@every_page
def test_every_link_leads_to_a_file_and_to_a_heading_in_it(page: Page) -> None:
    wrong = [f"{page.path}:{line}: {target}" for line, target in markdown.links(page.text) if _is_broken(page, target)]
    assert not wrong, "these links lead nowhere:\n" + "\n".join(wrong)


def _is_broken(page: Page, target: str) -> bool:
    if re.match(r"[a-z]+:", target):
        return not re.match(r"https?://[\w.-]+(/|$)", target)
    path, _, anchor = target.partition("#")
    file = normpath(join(dirname(page.path), path)) if path else page.path
    if not _tree().has_path(file):
        return True
    return bool(anchor) and anchor not in markdown.anchors((repository.ROOT / file).read_text())


@cache
def _tree() -> Tree:
    return Tree(repository.files())


@every_page
def test_every_code_block_names_its_language(page: Page) -> None:
    wrong = [f"{page.path}:{block.line}" for block in markdown.blocks(page.text) if block.language not in LANGUAGES]
    assert not wrong, f"fence these blocks, and name one of {sorted(LANGUAGES)}: {wrong}"


@pytest.mark.parametrize(
    "page",
    [pytest.param(document, marks=[pytest.mark.slow] * (document.path in SLOW)) for document in TODAY],
    ids=lambda page: page.path,
)
def test_every_command_exists_with_its_options(page: Page) -> None:
    found = [(where, programs.problem(command)) for where, command in pages.commands(page)]
    assert [f"{where}: {problem}" for where, problem in found if problem] == []


@every_page_of_today
def test_every_command_that_the_text_mentions_exists(page: Page) -> None:
    mentioned = [(span.line, programs.problem_of_mention(span.text)) for span in markdown.inline_code(page.text)]
    assert [f"{page.path}:{line}: {problem}" for line, problem in mentioned if problem] == []


@every_page_of_today
def test_every_option_and_variable_that_the_text_mentions_exists(page: Page) -> None:
    known = typer_commands.options() | python_modules.settings() | OTHERS_OPTIONS | _in_the_code()
    names = {word for span in markdown.inline_code(page.text) for word in _mentioned(span.text)}
    assert sorted(names - known) == []


def _mentioned(text: str) -> list[str]:
    return re.findall(r"^--[a-z][\w-]*|\bVGPU_[A-Z_]*[A-Z]\b(?!_)", text)


@cache
def _in_the_code() -> frozenset[str]:
    """Variables and options that occur in source files."""
    files = (path for path in repository.checked_files() if not path.endswith(".md"))
    texts = ((repository.ROOT / path).read_text() for path in files if path.endswith((".py", ".c", ".h")))
    return frozenset(word for text in texts for word in re.findall(r"--[a-z][\w-]*|VGPU_[A-Z_]*[A-Z]", text))


@every_page_of_today
def test_every_manifest_is_admitted(page: Page) -> None:
    wrong = []
    for where, text in pages.manifests(page):
        try:
            wrong += [f"{where}: {problem}" for one in manifests.documents(text) for problem in manifests.problems(one)]
        except yaml.YAMLError as error:
            wrong.append(f"{where}: {error}")
    assert wrong == []


@every_page
def test_every_piece_of_python_and_of_toml_can_be_read(page: Page) -> None:
    wrong = []
    for block in markdown.blocks(page.text):
        if block.language == "python":
            wrong += python_code.problems(block.text)
        if block.language == "toml":
            tomllib.loads(block.text)
    for written in pages.commands(page):
        if written.command.words[1:] == ("-",):
            wrong += python_code.problems(written.command.stdin)
    assert wrong == []
