"""The commands in a text of the shell."""

import pytest

from tests.contract.documents import shell
from tests.contract.documents.shell import Command


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("make images A='x y'  # both", [("make", "images", "A=x y")]),
        ("A=b vgpu top &", [("vgpu", "top")]),
        ("vgpu get pods | grep x || echo 'no pod'", [("vgpu", "get", "pods"), ("grep", "x"), ("echo", "no pod")]),
        ("gpu=$(vgpu get gpus)", [("vgpu", "get", "gpus")]),
        ('vgpu explain "$(vgpu top)"', [("vgpu", "explain", '"$(vgpu top)"'), ("vgpu", "top")]),
        ("until vgpu top; do sleep 1; done", [("vgpu", "top"), ("sleep", "1")]),
        ("export A=b", [("export", "A=b")]),
        ("vgpu run \\\n  -- true > out", [("vgpu", "run", "--", "true")]),
    ],
)  # fmt: skip
def test_the_words_of_every_command(text: str, words: list[tuple[str, ...]]) -> None:
    assert [command.words for command in shell.commands(text)] == words


def test_a_here_document_belongs_to_its_command() -> None:
    text = "true\nkubectl apply -f - <<'END' || echo no\na: 1\nEND\n"
    first, second, third = shell.commands(text)
    assert (first, third.stdin) == (Command(1, ("true",)), "")
    assert second == Command(2, ("kubectl", "apply", "-f", "-"), "a: 1\n")


def test_a_transcript_has_commands_after_prompts() -> None:
    assert shell.typed("$ vgpu top\nID (MiB\n$ true") == "vgpu top\n\ntrue"


def test_what_is_no_shell_is_refused_with_its_line() -> None:
    with pytest.raises(shell.NotShell, match="line 2 "):
        shell.commands("true\nvgpu top (\n")
