"""A part's log has one printable line for each record, whatever the texts are that it quotes."""

import logging
import subprocess
import sys

import pytest
from hypothesis import given

from tests.hostile_pods import tenants
from vgpu.adapters import log_lines

PROGRAM = """
import logging, sys
from vgpu.adapters import process

async def main():
    logging.getLogger("part").warning("pod %s: %s", "team/p", sys.argv[1])
    try:
        raise ValueError(sys.argv[1])
    except ValueError:
        logging.getLogger("part").exception("unexpected")

process.run("part", "info", main)
"""
FORGED = "x\n2030-01-01 00:00:00,000 INFO extender.audit: admin action {}\x1b[2J\x9b2J\u202e"


def formatted(text: str) -> str:
    record = logging.LogRecord("part", logging.WARNING, "", 0, "pod %s", (text,), None)
    return log_lines.LineFormatter("%(levelname)s %(message)s").format(record)


@given(tenants.texts)
def test_a_record_is_one_bounded_printable_line(text: str) -> None:
    found = formatted(text)
    assert found.isprintable()
    assert found.startswith("WARNING pod ")
    assert len(found) < 12 * log_lines.MAX_MESSAGE


def test_texts_that_can_be_printed_stay_as_they_are() -> None:
    assert formatted("été/日本 \\n") == "WARNING pod été/日本 \\n"


def test_what_is_too_long_is_cut() -> None:
    assert len(formatted("x" * 300_000)) == log_lines.MAX_MESSAGE


@pytest.mark.parametrize("unpaired", ["\ud800", "\udfff\n"])
def test_half_a_surrogate_pair_is_written_as_an_escape(unpaired: str) -> None:
    assert formatted(unpaired).encode().decode().startswith(("WARNING pod \\ud800", "WARNING pod \\udfff"))


def test_a_text_is_escaped_where_no_file_can_be_opened() -> None:
    """A part that has no file descriptor left logs that, with a traceback."""
    script = """
import resource
from vgpu.adapters import log_lines
resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))
print(log_lines.escaped("a\\nb"))
"""
    done = subprocess.run([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, check=True)
    assert done.stdout == "a\\nb\n"


def test_no_text_forges_a_record_of_a_part_not_even_by_a_traceback() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM, FORGED], stderr=subprocess.PIPE, text=True, check=True)
    lines = done.stderr.removesuffix("\n").split("\n")
    records = [line for line in lines if not line.startswith("  ")]
    assert [line.split(" ")[2:4] for line in records] == [["WARNING", "part:"], ["ERROR", "part:"]]
    assert [line for line in lines if not line.isprintable()] == []
    assert r"\n2030-01-01" in records[0]
