"""Results that no machine measured, for tests of tables and of the reader."""

from typing import Any

from benchmarks.record.machine import HostMachine
from benchmarks.record.result import Result, ResultRow

HOST = HostMachine("AMD EPYC", 16, "6.18", "3.12.1", "NVIDIA H200", "580.1", "13.0")


def run(*rows: ResultRow, **fields: Any) -> Result:
    values = {
        "script": "limiter_memory",
        "arguments": ("costs",),
        "machine": HOST,
        "commit": "abc1234",
        "date": "2026-11-22T14:05:00Z",
        "simulated": False,
        "fingerprints": {},
    }
    return Result(**{**values, **fields}, rows=rows)


def cost(ratio: float, name: str = "launch", fault: str = "") -> ResultRow:
    details = {"native_ns": 3000.0, "limited_ns": 3000.0 * ratio, "quartiles": [ratio, ratio], "failed": [0, 0]}
    return ResultRow(id=f"costs.{name}", value=ratio, unit="ratio", goal="<= 1.03", fault=fault, details=details)
