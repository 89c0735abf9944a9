"""Several containers on one card, each with its share, policy and load.

Their kernels do a fixed amount of work and do not spin: an interrupted kernel makes no progress.
"""

import functools
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.compute.load import Feeder, FeederLoad, feed, feed_together
from benchmarks.compute.node import LaunchPlace
from benchmarks.compute.scenario import SHOWN, Figures, Goal, Scenario, at_least, at_most, near
from benchmarks.container import native_env

WORK = FeederLoad("work", 500)
POINTS = 1.5
EIGHT_MS = 50.0
SUM = 98.0  # of what one alone does
LONGEST = "longest launch ms"


@dataclass(frozen=True, slots=True)
class ShareTenant:
    """A container and the goal of its share. Without a load it has a context and is idle."""

    cores: int | None
    policy: str = "fixed"
    goal: Goal = SHOWN
    load: FeederLoad | None = WORK


def fixed(cores: int, points: float = POINTS) -> ShareTenant:
    """Return a container with policy fixed: it gets its share and no more."""
    return ShareTenant(cores, goal=near(cores, points))


def burst(cores: int) -> ShareTenant:
    """Return a container with policy burst: it gets its share while the others use the rest."""
    return ShareTenant(cores, "burst", near(cores, POINTS))


EIGHT = (fixed(12),) * 8
TENANTS: dict[str, Sequence[ShareTenant]] = {
    "30 and 60": (fixed(30), fixed(60)),
    "10, 20, 30 and 35": (fixed(10), fixed(20), fixed(30), fixed(35)),
    "eight of 12": EIGHT,
    "burst 50 and 50 beside an idle third": (burst(50), burst(50), ShareTenant(None, "burst", load=None)),
    "fixed 30 beside one without a share": (fixed(30), ShareTenant(None, "burst")),
    "fixed 40 beside best-effort": (fixed(40), ShareTenant(None, "best-effort")),
}


def tenants(seconds: float, *, quick: bool) -> list[Scenario]:
    """Each of `TENANTS`; only the first two when `quick`."""
    chosen = list(TENANTS.items())[: 2 if quick else None]
    bounds = {"eight of 12": at_most(EIGHT_MS)}
    return [scenario("tenants", name, containers, seconds, bounds.get(name, SHOWN)) for name, containers in chosen]


def halves(seconds: float) -> list[Scenario]:
    """Two compute-bound containers with policy burst: the work of both, divided by that of one alone."""

    def measure(place: LaunchPlace) -> Figures:
        envs = [place.container(50, "burst") for _ in range(2)]
        shares = [fed.share for fed in feed_together([(WORK, env) for env in envs], seconds)]
        alone = feed_alone(WORK, seconds)
        return {"sum over alone %": 100 * sum(shares) / alone, "one of both %": 100 * shares[0] / alone}

    goals = {"sum over alone %": at_least(SUM), "one of both %": SHOWN}
    return [Scenario("burst", "two compute-bound, 50 and 50", goals, measure)]


def eight(seconds: float) -> list[Scenario]:
    """The longest launch among eight containers."""
    return [scenario("tenants", "eight of 12", EIGHT, seconds, at_most(EIGHT_MS))]


def scenario(
    part: str, name: str, containers: Sequence[ShareTenant], seconds: float, longest: Goal = SHOWN
) -> Scenario:
    """Return the scenario of these containers together, with a figure for each that has a load."""
    working = [tenant for tenant in containers if tenant.load]
    labels = [f"{number}: {tenant.policy} {tenant.cores or 0} %" for number, tenant in enumerate(working, 1)]

    def measure(place: LaunchPlace) -> Figures:
        envs = [place.container(tenant.cores, tenant.policy) for tenant in containers]
        idle = [Feeder(WORK, 0, env) for tenant, env in zip(containers, envs, strict=True) if tenant.load is None]
        for feeder in idle:
            feeder.await_start()
        loads = [(tenant.load, env) for tenant, env in zip(containers, envs, strict=True) if tenant.load]
        every = feed_together(loads, seconds)
        for feeder in idle:
            feeder.end()
        shares = {label: 100 * fed.share for label, fed in zip(labels, every, strict=True)}
        return {**shares, "sum %": sum(shares.values()), LONGEST: max(fed.longest_ms for fed in every)}

    goals = {label: tenant.goal for label, tenant in zip(labels, working, strict=True)}
    return Scenario(part, name, {**goals, "sum %": SHOWN, LONGEST: longest}, measure)


@functools.cache
def feed_alone(load: FeederLoad, seconds: float) -> float:
    """Return the share of the time that a load takes natively and alone; the higher of two measurements."""
    return max(feed(load, seconds, native_env()).share for _ in range(2))
