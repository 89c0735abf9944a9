"""Hooks of MkDocs: documents outside of docs/ become pages, and links between all of them stay right.

A link to a file that is no page, such as a manifest, leads to a copy of the file. What a hook takes and returns:
https://www.mkdocs.org/dev-guide/plugins/#events
"""

import posixpath
import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

REPOSITORY: Final = Path(__file__).parents[2]
PAGES: Final = {  # path in the repository: path in the site
    "README.md": "index.md",
    "manifests/README.md": "install.md",
    "manifests/examples/README.md": "examples.md",
    "benchmarks/README.md": "measurements.md",
    "CHANGELOG.md": "changelog.md",
    "ARCHITECTURE.md": "architecture.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "reporting.md",
}
COPIES: Final = "files"
# A link of Markdown, in parts: text without brackets in it, target, anchor.
_LINK: Final = re.compile(r"(?P<text>!?\[[^\]\[]*\])\((?P<target>[^)\s#]+)?(?P<anchor>#[^)\s]*)?\)")
_FENCE: Final = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the documents that are not in docs/, and the files to which any document links."""
    seen, open_ends = set[str](), [*PAGES, *(_source_of(file.src_uri) for file in files if _is_document(file.src_uri))]
    while open_ends:
        path = open_ends.pop()
        if path in seen or not (REPOSITORY / path).is_file():
            continue
        seen.add(path)
        open_ends += sorted(_targets(path)) if _is_document(path) else ()  # the search index has this order
        place = _place_of(path)
        if files.get_file_from_path(place) is None:
            files.append(File.generated(config, place, abs_src_path=str(REPOSITORY / path)))
    return files


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Point the links of a document at pages and copies; a link to a folder becomes its text."""
    source = _source_of(page.file.src_uri)

    def renewed(link: re.Match[str]) -> str:
        target, anchor = link["target"] or "", link["anchor"] or ""
        if not target or "://" in target or target.startswith("mailto:"):
            return link[0]
        path = _repository_path(source, target)
        if (REPOSITORY / path).is_dir():
            return link["text"].strip("[]")
        start = posixpath.dirname(page.file.src_uri) or "."
        return f"{link['text']}({posixpath.relpath(_place_of(path), start)}{anchor})"

    return _outside_of_code(markdown, renewed)


def _outside_of_code(markdown: str, renewed: Callable[[re.Match[str]], str]) -> str:
    pieces, end = [], 0
    for fence in _FENCE.finditer(markdown):
        pieces += [_LINK.sub(renewed, markdown[end : fence.start()]), fence[0]]
        end = fence.end()
    return "".join([*pieces, _LINK.sub(renewed, markdown[end:])])


def _targets(document: str) -> set[str]:
    """Return the paths in the repository to which a document links."""
    text = _FENCE.sub("", (REPOSITORY / document).read_text())
    found = {link["target"] for link in _LINK.finditer(text) if link["target"] and "://" not in link["target"]}
    return {_repository_path(document, target) for target in found}


def _repository_path(document: str, target: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(document), target))


def _source_of(page: str) -> str:
    """Return the path in the repository of a page."""
    named = {made: source for source, made in PAGES.items()}
    return named.get(page) or (f"docs/{page}" if (REPOSITORY / "docs" / page).is_file() else page)


def _place_of(path: str) -> str:
    """Return where a file of the repository is in the site."""
    if path in PAGES:
        return PAGES[path]
    return path.removeprefix("docs/") if _is_document(path) or path.startswith("docs/") else f"{COPIES}/{path}"


def _is_document(path: str) -> bool:
    return path.endswith(".md")
