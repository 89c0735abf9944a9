"""What programs use: accounts, held cards, diagnoses and estimates."""

from collections.abc import Iterator
from typing import Final

from benchmarks import accounting, live_diagnosis
from benchmarks.record.result import ResultRow, slug
from benchmarks.report.tables.report_table import DETAILS, Cell, Line, ReportTable, goal, median, native


def found(row: ResultRow) -> str:
    """Return the codes that were found."""
    return str(row.details.get("found") or "none")


ACCOUNTING: Final = ReportTable(
    "accounting",
    DETAILS,
    "case and account",
    {"s": median(3), "trace s": native(3)},
    tuple(
        Line(f"{case}: {account}", (slug(case, account),))
        for case, tenants in accounting.CASES.items()
        for account in accounting.accounts(tenants)
    ),
)

HOLD: Final = ReportTable(
    "hold",
    DETAILS,
    "figure",
    {"goal": goal, "median": median(2), "unit": lambda row: row.unit},
    (
        *(
            Line(f"target {target} %: {name}", (slug(f"target {target}", name),))
            for target in (30, 50, 70)
            for name in ("mean", "settling", "memory", "sleeps")
        ),
        *(
            Line(f"beside a program, {place}: {name}", (slug(place, name),))
            for place in ("native", "arbiter")
            for name in ("rate", "asleep", "back")
        ),
    ),
)

DIAGNOSIS: Final = ReportTable(
    "live-diagnosis",
    DETAILS,
    "program",
    {"right": goal, "found": found},
    tuple(Line(case.name or case.program, (f"{case.id}.code",)) for case in live_diagnosis.CASES),
)

CURES: Final = ReportTable(
    "cures",
    DETAILS,
    "program with its cure",
    {"times as fast": median(2), "said at most": native(1)},
    tuple(Line(case.program, (f"{case.id}.cured",)) for case in live_diagnosis.CASES if case.has_cure),
)


def error(row: ResultRow) -> str:
    """Return an error in percent with its sign, bold when its goal is missed."""
    text = f"{round(row.value or 0, 1) + 0.0:+.1f}"  # + 0.0: no negative zero
    return f"**{text}**" if row.fault else text


def mebibytes(name: str) -> Cell:
    """Return the cell of a size in the details, given in bytes."""
    return lambda row: f"{row.details[name] / 2**20:,.0f}"


_TRAINED: Final = ("momentum", "adamw", "adamw-fused")
_KINDS: Final = ("flash", "flash checkpointing", "eager", "eager checkpointing")


def _estimated() -> Iterator[tuple[str, list[str]]]:
    """Yield the cases of estimate_accuracy in groups: a label, and the cases' names, which stand in row ids."""
    yield "MLP, 64 and 1024 samples", [f"MLP b{batch} {optimizer}" for batch in (64, 1024) for optimizer in _TRAINED]
    yield (
        "ResNet-50, 16 and 64 images",
        [f"ResNet-50 b{batch} {optimizer}" for batch in (16, 64) for optimizer in _TRAINED],
    )
    for size in ("124M", "355M"):
        runs = [f"GPT-2 {size} {dtype} b{batch}" for dtype in ("fp32", "bf16") for batch in (2, 8)]
        for kind in _KINDS:
            yield f"GPT-2 {size}, {kind}", [f"{run} {kind} {optimizer}" for run in runs for optimizer in _TRAINED]
        yield f"GPT-2 {size}, decoding", [f"{run} decoding" for run in runs]


ESTIMATE: Final = ReportTable(
    "estimate",
    DETAILS,
    "model, and what is compared",
    {"largest error, %": error, "estimated MiB": mebibytes("estimated"), "measured MiB": mebibytes("measured")},
    tuple(
        Line(f"{label}: {what} of {len(cases)} runs", tuple(slug(case, what) for case in cases))
        for label, cases in _estimated()
        for what in ("peak", "NVML")
    ),
    largest_only=True,
)
