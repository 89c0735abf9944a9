"""One card that is held: what is measured, decided and reported, in fake time."""

from dataclasses import dataclass, field

from vgpu.domain.identifiers import CardUuid
from vgpu.workloads.hold.control import HoldSettings, Mode
from vgpu.workloads.hold.session import SAMPLE_S, HoldReport, HoldSession

S = 1_000_000_000
STEP = int(SAMPLE_S * S)


@dataclass
class Card:
    """The load is 0.01 % for each iteration; others add theirs, and are seen as processes unless they are hidden."""

    iterations: int = 0
    taken: float = 0.0
    are_hidden: bool = False
    answers: bool = True
    job: frozenset[CardUuid] = frozenset()
    is_job_used: bool = False

    def set(self, iterations: int) -> None:
        self.iterations = iterations

    def utilization(self) -> float | None:
        return min(100.0, 0.01 * self.iterations + self.taken) if self.answers else None

    def others(self) -> bool:
        return self.taken > 0 and not self.are_hidden

    def job_cards(self) -> frozenset[CardUuid]:
        return self.job

    def used_elsewhere(self) -> CardUuid | None:
        return min(self.job) if self.is_job_used else None


@dataclass
class World:
    card: Card = field(default_factory=Card)
    reports: list[HoldReport] = field(default_factory=list)
    now: int = 0

    def __post_init__(self) -> None:
        self.session = HoldSession(CardUuid("GPU-a"), HoldSettings(50), self.card, self.card, self.reports.append, 0)

    def run(self, seconds: float) -> None:
        until = self.now + int(seconds * S)
        while self.now < until:
            self.now += STEP
            self.session.sample(self.now)


def test_the_target_is_reached_and_reported() -> None:
    world = World()
    assert world.card.iterations == 1000
    world.run(60)
    assert abs(world.card.iterations - 5000) < 300
    first = world.reports[0]
    assert (first.gpu, first.mode, first.target, first.load) == ("GPU-a", Mode.RUN, 50, 10.0)
    assert first.message == "Run for 3s with load 10 and multiplier 1000"
    assert "Adjusted speed: boost" in [report.message for report in world.reports]


def test_no_load_is_made_within_a_second_of_others() -> None:
    world = World()
    world.run(30)
    world.card.taken = 30.0
    world.run(0.6)
    assert world.card.iterations == 0
    world.card.taken = 0.0
    world.run(4.4)
    assert world.card.iterations == 0
    world.run(1.5)
    assert world.card.iterations > 0


def test_others_that_no_process_list_shows_keep_the_load_asleep() -> None:
    """As in a container, which learns of others by its own turns, and takes none while it makes no load."""
    world = World()
    world.run(30)
    world.card.taken = 30.0
    world.run(0.6)
    world.card.are_hidden = True
    world.run(60)
    assert world.card.iterations == 0
    world.card.taken = 0.0
    world.run(7)
    assert world.card.iterations > 0


def test_a_card_that_does_not_answer_changes_nothing() -> None:
    world = World(Card(answers=False))
    world.run(60)
    assert world.card.iterations == 1000
    assert world.session.load_percent is None


def test_use_of_another_card_of_the_job_counts_as_use_of_this_one() -> None:
    """Its ranks wait for each other: the load would meet the next collective."""
    world = World()
    world.run(30)
    world.card.job, world.card.is_job_used = frozenset({CardUuid("GPU-c"), CardUuid("GPU-b")}), True
    world.run(60)
    assert world.card.iterations == 0
    slept = world.reports[-1]
    assert slept.message.startswith("Sleep: others use GPU-b, which has a job with this card, load ")
    assert slept.job_gpus == ("GPU-b", "GPU-c")
    world.card.is_job_used = False
    world.run(7)
    assert world.card.iterations > 0
    assert world.reports[-1].message.startswith("Idle for ")
