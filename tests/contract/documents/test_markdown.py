"""What a Markdown text links to, and what its code is."""

from tests.contract.documents import markdown
from tests.contract.documents.markdown import Block, Span

TEXT = """# The `vgpu` command: what it does
See [below](#a--b), [there](guide.md#x), `vgpu top`.

## A & B
```sh
vgpu top
```

    indented

## A & B
- in a list

  ```yaml
  a: 1
  ```

| table |
|---|
| [cell](cell.md) |
"""


def test_code_blocks_have_their_language_and_the_line_of_their_text() -> None:
    assert list(markdown.blocks(TEXT)) == [
        Block(6, "sh", "vgpu top\n"),
        Block(9, "", "indented\n"),
        Block(15, "yaml", "a: 1\n"),
    ]


def test_links_are_found_in_paragraphs_and_tables_and_not_in_code() -> None:
    assert list(markdown.links(TEXT + "`[no](link.md)`\n")) == [
        Span(2, "#a--b"),
        Span(2, "guide.md#x"),
        Span(20, "cell.md"),
    ]


def test_inline_code() -> None:
    assert list(markdown.inline_code(TEXT)) == [Span(1, "vgpu"), Span(2, "vgpu top")]


def test_anchors_are_those_of_github() -> None:
    assert markdown.anchors(TEXT) == {"the-vgpu-command-what-it-does", "a--b", "a--b-1"}
