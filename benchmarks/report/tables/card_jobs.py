"""Jobs on several cards in PyTorch and JAX: alone with fixed shares, and beside others."""

from collections.abc import Iterator
from typing import Final

from benchmarks.card_jobs.jobs import JOBS
from benchmarks.card_jobs.mixes import AloneMix, BesideTrainers, JobMix, TwoJobs
from benchmarks.compute.linked_jobs import JOB_FIGURES, PART, TRAINER_FIGURES
from benchmarks.record.result import slug
from benchmarks.report.tables.report_table import DETAILS, Line, ReportTable, goal, median, native

_CARDS: Final = 2
_SHARES: Final = (100, 80, 50, 20)
_TWO: Final = tuple(
    TwoJobs(name, _CARDS, shares, policy)
    for name in ("ddp", "decoder", "fsdp")
    for policy, shares in (("burst", (50, 50)), ("fixed", (50, 50)), ("fixed", (30, 60)))
    if shares == (50, 50) or name == "ddp"
)
_TRAINERS: Final = (
    BesideTrainers("ddp", _CARDS, 50, "fixed"),
    BesideTrainers("decoder", _CARDS, 50, "burst"),
)


def _alone(name: str) -> Line:
    mixes = [AloneMix(name, _CARDS, share) for share in _SHARES]
    return Line(name, tuple(slug(PART, mix.name, f"fixed {mix.share}: steps a second") for mix in mixes))


def _beside(mix: JobMix, names: tuple[str, ...]) -> Iterator[Line]:
    for name in names:
        yield Line(f"{mix.name}; {name}", (slug(PART, mix.name, name),))


FRAMEWORK_JOBS: Final = ReportTable(
    "framework-jobs",
    DETAILS,
    "job on two cards; steps a second at 100, 80, 50 and 20 %",
    {"native": native(1), "with vgpushare": median(1), "goal": goal},
    tuple(_alone(name) for name in JOBS),
)
BESIDE_JOBS: Final = ReportTable(
    "beside-jobs",
    DETAILS,
    "jobs on the same two cards",
    {"native": native(1), "with vgpushare": median(1), "goal": goal},
    (
        *(line for mix in _TWO for line in _beside(mix, JOB_FIGURES)),
        *(line for mix in _TRAINERS for line in _beside(mix, TRAINER_FIGURES)),
    ),
)
