"""What a log of NCCL_DEBUG=INFO shows: which way data go between ranks, and what NCCL could not use.

The lines that count, as NCCL 2.4 to 2.30 write them:

    HOST:PID:TID [0] NCCL INFO Channel 00/0 : 7[7] -> 8[0] [send] via NET/IB/0/GDRDMA    between nodes
    HOST:PID:TID [0] NCCL INFO Channel 00 : 0[1e000] -> 1[3d000] via SHM/direct/direct    in a node; else P2P/...
    HOST:PID:TID [0] NCCL INFO Using network Socket
    HOST:PID:TID [0] NCCL INFO NCCL_IB_DISABLE set by environment to 1.
    NCCL version 2.18.3+cuda12.1
    HOST:PID:TID [0] NCCL INFO AllReduce: opCount 0 ...                                   a line for each operation
    HOST:PID:TID [0] FILE:LINE NCCL WARN ...

`Using network Socket` alone is no finding: NCCL names a network in a job of one node too, and does not use it.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from vgpu.domain import printable
from vgpu.domain.errors import MalformedError
from vgpu.workloads.diagnose.catalogue import FindingCode
from vgpu.workloads.diagnose.finding import ProgramFinding, merged

MAX_LINES: Final = 5_000_000
_MAX_LINE: Final = 4096  # characters of a line that are read
_MAX_SHOWN: Final = 20  # lines that a finding names
_OLDEST: Final = (2, 20)  # of January 2024
# In the lines that NCCL writes. Programs write of NCCL too: "initialized NCCL backend" is no log of it.
_MARK: Final = re.compile(r"NCCL (?:INFO|WARN|CALL|TRACE|version \d)")

_CHANNEL: Final = re.compile(r"Channel \d+(?:/\d+)? ?: \d+\[[0-9a-f]+\] -> \d+\[[0-9a-f]+\] (?:\[\w+\] )?via (\S+)")
_VERSION: Final = re.compile(r"NCCL version (\d{1,3})\.(\d{1,3})(?:\.(\d{1,3}))?")
_HOST: Final = re.compile(r"^\S*?([^\s:]+):\d+:\d+ \[")
_SETTING: Final = re.compile(r"(NCCL_\w+) set by environment to (\S+?)\.?$")
_OPERATION: Final = re.compile(r"NCCL INFO \w+: opCount ")
_WARNING: Final = re.compile(r"NCCL WARN (.*)")
_CAUSES: Final = {
    ("NCCL_IB_DISABLE", "1"): FindingCode.NCCL_SOCKETS,
    ("NCCL_NET", "Socket"): FindingCode.NCCL_SOCKETS,
    ("NCCL_P2P_DISABLE", "1"): FindingCode.NCCL_NO_PEER_ACCESS,
    ("NCCL_NET_GDR_LEVEL", "LOC"): FindingCode.NCCL_NO_GDRDMA,
    ("NCCL_NET_GDR_LEVEL", "0"): FindingCode.NCCL_NO_GDRDMA,
}


def check(lines: Iterable[str]) -> list[ProgramFinding]:
    """Return what a log shows, one finding for each code; after 5 million lines the rest is not read.

    Raises MalformedError where no line is NCCL's.
    """
    counted: dict[FindingCode, int] = {}
    shown, is_log = [], False
    for number, line in zip(range(1, MAX_LINES + 1), lines, strict=False):
        is_log = is_log or _MARK.search(line[:_MAX_LINE]) is not None
        for finding in _of_line(number, line[:_MAX_LINE].rstrip()):
            counted[finding.code] = counted.get(finding.code, 0) + 1
            if counted[finding.code] <= _MAX_SHOWN:
                shown.append(finding)
    if not is_log:
        raise MalformedError("no line is NCCL's; run the job with NCCL_DEBUG=INFO, and give its output")
    return [_with_count(finding, counted[finding.code]) for finding in merged(shown)]


def _with_count(found: ProgramFinding, count: int) -> ProgramFinding:
    more = f" ({count} lines)" if count > len(found.lines) else ""
    return ProgramFinding(found.code, found.lines, found.seen + more)


def _of_line(number: int, line: str) -> Iterator[ProgramFinding]:
    if channel := _CHANNEL.search(line):
        yield from _of_channel(number, line, channel[1])
    elif version := _VERSION.search(line):
        if (int(version[1]), int(version[2])) < _OLDEST:
            yield ProgramFinding(FindingCode.NCCL_OLD, (number,), f"{version[0]}, older than {_OLDEST[0]}.{_OLDEST[1]}")
    elif (setting := _SETTING.search(line)) and (code := _CAUSES.get((setting[1], setting[2]))):
        yield ProgramFinding(code, (number,), f"{setting[1]}={setting[2]}")
    elif _OPERATION.search(line):
        yield ProgramFinding(FindingCode.NCCL_DEBUG_COST, (number,), "a line for each operation")
    elif warning := _WARNING.search(line):
        yield ProgramFinding(FindingCode.NCCL_WARNING, (number,), _printable(warning[1]))


def _of_channel(number: int, line: str, way: str) -> Iterator[ProgramFinding]:
    host = _HOST.search(line)
    at = f"{_printable(host[1])}: " if host else ""
    if way.startswith("NET/Socket"):
        yield ProgramFinding(FindingCode.NCCL_SOCKETS, (number,), f"{at}a channel via {_printable(way)}")
    elif way.startswith("NET/") and "GDRDMA" not in way:
        yield ProgramFinding(
            FindingCode.NCCL_NO_GDRDMA, (number,), f"{at}a channel via {_printable(way)}, without GDRDMA"
        )
    elif way.startswith("SHM"):
        yield ProgramFinding(FindingCode.NCCL_NO_PEER_ACCESS, (number,), f"{at}a channel via {_printable(way)}")


def _printable(text: str) -> str:
    return printable.line(text[:120])
