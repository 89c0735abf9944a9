"""The rows of `vgpu top`: one for each allocation and card, from this sample and the one before. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from vgpu.cli.local import job_terms
from vgpu.cli.local.allocations import MachineAllocation
from vgpu.domain.asks import space
from vgpu.domain.asks.policy import ComputePolicy
from vgpu.domain.formats import region
from vgpu.domain.formats.limits import ANY_GPU, CardLimit, Limits
from vgpu.domain.formats.region import CardUse, UsageWindow
from vgpu.domain.identifiers import CardUuid

Key = tuple[str, CardUuid]  # an allocation's ID and a card's UUID


@dataclass(frozen=True, slots=True)
class TopRow:
    """One allocation on one card; the card is `*` before any was used.

    Attributes:
        used_bytes: None, as the figures of the launches and refusals, where the region cannot be read.
        limit_bytes: None for no limit, and where the limits cannot be read.
        policy: None, with `cores` and `priority` 0, where the limits cannot be read.
        share_1s: share of the card's time, 0 to 1, over the last second; None where it was never measured, as for an
            allocation without cores that is alone on its card.
        share_10s: over the last ten seconds.
        throttled: share of the time since the last sample that launches waited; None in the first sample.
        space_group: the name of its group in space, whose policy is `space`; empty where it is in none.
        job: the first digits of what names its job, whose containers have their turns together; empty: none.
    """

    id: str
    name: str
    gpu: CardUuid
    used_bytes: int | None
    limit_bytes: int | None
    policy: str | None
    cores: int
    priority: int
    share_1s: float | None
    share_10s: float | None
    throttled: float | None
    delayed_launches: int | None
    longest_wait_us: int | None
    refusals: int | None
    space_group: str = ""
    job: str = ""


@dataclass(frozen=True, slots=True)
class JobRow:
    """A job of several containers: its cards together.

    Attributes:
        job: the first digits of what names it.
        members: the names of its containers.
        gpus: its cards.
        cores: the lowest of its shares, which counts for all.
        policy: the weakest of its policies, likewise; None where the limits cannot be read.
        least_1s: the smallest share of the last second on a card; None where none was measured.
        most_1s: the largest one. The two differ where a card does more work than the others, or waits for them.
        throttled: the largest share of the time that launches waited.
    """

    job: str
    members: tuple[str, ...]
    gpus: tuple[CardUuid, ...]
    cores: int
    policy: str | None
    least_1s: float | None
    most_1s: float | None
    throttled: float | None


@dataclass(frozen=True, slots=True)
class GroupRow:
    """A group in space on one card: its members together.

    Attributes:
        group: its name.
        members: number of allocations.
        used_bytes: of those whose region can be read.
        limit_bytes: the sum of the members' limits; None where one has none.
        cores: percent of the card's time that is guaranteed to the group.
        share_1s: the largest of the members' shares, because they have parts of one turn at the same moment: the group
            had this share at least. None where none was measured, as for a group that is alone on its card.
        share_10s: likewise over the last ten seconds.
    """

    group: str
    gpu: CardUuid
    members: int
    used_bytes: int
    limit_bytes: int | None
    cores: int
    share_1s: float | None
    share_10s: float | None


@dataclass(frozen=True, slots=True)
class WaitSample:
    """How long the launches of each row had waited in total at one time (CLOCK_MONOTONIC, ns)."""

    at_ns: int = 0
    throttled_ns: Mapping[Key, int] | None = None


def make_rows(allocations: Iterable[MachineAllocation], before: WaitSample, now_ns: int) -> list[TopRow]:
    """Make the rows of allocations that were read at `now_ns`."""
    return [
        _row(allocation, card, before, now_ns)
        for allocation in allocations
        for card in allocation.cards or (_unused(),)
    ]


def make_groups(rows: Iterable[TopRow]) -> list[GroupRow]:
    """Return the groups in space among the rows, by name and card."""
    found: dict[tuple[str, CardUuid], list[TopRow]] = {}
    for row in rows:
        if row.space_group:
            found.setdefault((row.space_group, row.gpu), []).append(row)
    return [_group(name, gpu, members) for (name, gpu), members in sorted(found.items())]


def make_jobs(rows: Iterable[TopRow]) -> list[JobRow]:
    """Return the jobs of several containers among the rows, in the order of their names."""
    found: dict[str, list[TopRow]] = {}
    for row in rows:
        if row.job:
            found.setdefault(row.job, []).append(row)
    return [_job(name, held) for name, held in sorted(found.items()) if len({row.id for row in held}) > 1]


def _job(name: str, held: list[TopRow]) -> JobRow:
    policies = [ComputePolicy(row.policy) for row in held if row.policy is not None]
    shares = [row.share_1s for row in held if row.share_1s is not None]
    return JobRow(
        job=name,
        members=tuple(dict.fromkeys(row.name for row in held)),
        gpus=tuple(dict.fromkeys(row.gpu for row in held if row.gpu != ANY_GPU)),
        cores=min(row.cores for row in held),
        policy=job_terms.weakest(policies) if policies else None,
        least_1s=min(shares, default=None),
        most_1s=max(shares, default=None),
        throttled=max((row.throttled for row in held if row.throttled is not None), default=None),
    )


def _group(name: str, gpu: CardUuid, members: list[TopRow]) -> GroupRow:
    limits = [row.limit_bytes for row in members]
    return GroupRow(
        group=name,
        gpu=gpu,
        members=len(members),
        used_bytes=sum(row.used_bytes or 0 for row in members),
        limit_bytes=None if None in limits else sum(limit for limit in limits if limit is not None),
        cores=space.guarantee(row.cores for row in members),
        share_1s=max((row.share_1s for row in members if row.share_1s is not None), default=None),
        share_10s=max((row.share_10s for row in members if row.share_10s is not None), default=None),
    )


def sample(allocations: Iterable[MachineAllocation], now_ns: int) -> WaitSample:
    """Return what the next rows are compared with."""
    return WaitSample(
        now_ns,
        {
            (allocation.folder.name, card.gpu): card.throttled_ns
            for allocation in allocations
            for card in allocation.cards or ()
        },
    )


def _unused() -> CardUse:
    return CardUse(ANY_GPU, 0, None, 0, 0, 0)


def _row(allocation: MachineAllocation, card: CardUse, before: WaitSample, now_ns: int) -> TopRow:
    limits = allocation.limits or Limits(())
    limit = _limit_of(limits, card.gpu)
    is_known = allocation.cards is not None
    return TopRow(
        id=allocation.folder.name,
        name=allocation.name,
        gpu=card.gpu,
        used_bytes=card.used_bytes if is_known else None,
        limit_bytes=limit.memory_bytes if allocation.limits else None,
        policy=_policy(allocation),
        cores=limit.cores,
        priority=limits.priority,
        share_1s=_share(card, card.second, now_ns),
        share_10s=_share(card, card.ten_seconds, now_ns),
        throttled=_throttled((allocation.folder.name, card.gpu), card, before, now_ns),
        delayed_launches=card.delayed_launches if is_known else None,
        longest_wait_us=card.longest_wait_us if is_known else None,
        refusals=card.refusals if is_known else None,
        space_group=allocation.group,
        job=job_terms.job_of(allocation),
    )


def _policy(allocation: MachineAllocation) -> str | None:
    if allocation.limits is None:
        return None
    return space.SPACE if allocation.group else str(allocation.limits.compute_policy)


def _limit_of(limits: Limits, gpu: CardUuid) -> CardLimit:
    """Return the card's own limit, else the one for every card, else a limit of 0; before any use the first limit."""
    by_gpu = {card.gpu: card for card in limits.cards}
    if gpu == ANY_GPU and limits.cards:
        return limits.cards[0]
    return by_gpu.get(gpu) or by_gpu.get(ANY_GPU) or CardLimit(gpu, 0, 0)


def _share(card: CardUse, window: UsageWindow, now_ns: int) -> float | None:
    return region.recent_share(card, window, now_ns) if window.begun_ns else None


def _throttled(key: Key, card: CardUse, before: WaitSample, now_ns: int) -> float | None:
    former = (before.throttled_ns or {}).get(key)
    if former is None or now_ns <= before.at_ns:
        return None
    return max(0, card.throttled_ns - former) / (now_ns - before.at_ns)
