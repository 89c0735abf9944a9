"""The summary of a chaos run becomes rows of a result."""

import pytest

from benchmarks import outages
from benchmarks.record.result import ResultRow

SUMMARY = """fault                      count  median s  worst s  pods failed
429 to our parts               4       2.6      3.6            0
kill -9 plugin                 4       6.1      9.0            3
never                          1       inf      inf            0

findings:
     4  not normal in 30 s after: kill -9 extender seed 7: 30.2 s

socket                 asked  failed   p50 ms   p99 ms    max ms  > 1 s
extender filter         8912      56      4.2     89.6    8105.6      4
"""


def test_a_row_for_each_fault_with_an_end() -> None:
    first, second = outages.rows(SUMMARY)
    assert first.id == "outage.429-to-our-parts"
    assert second == ResultRow(
        id="outage.kill-9-plugin", value=6.1, unit="s", worst=9.0, details={"count": 4, "failed": 3}
    )


def test_a_text_without_such_lines_is_refused() -> None:
    with pytest.raises(ValueError, match="the summary has no line"):
        list(outages.rows("findings:\n"))
