"""What a seed decides before anything happens: the requests of each step, and their pauses.

Nothing here reads the cluster, so that a seed gives equal requests on a fast machine and on a slow one, in a run of
any length. A request about a pod or Job that was refused or has ended is sent all the same, and the API server refuses
it.
"""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

NAMESPACE: Final = "walk"
LIMITED: Final = "walk-limited"  # has a quota
QUEUED: Final = "walk-queued"  # its Jobs and pods wait in a queue of Kueue
HIGH: Final = "walk-high"  # a PriorityClass
MOST_PODS: Final = 60
STEPS: Final = 12  # of a round
FEWEST_CARDS: Final = 2  # of a node, which no move goes below
_PAUSES_S: Final = (0.0, 0.1, 1.0)
_STRATEGIC: Final = "application/strategic-merge-patch+json"
MERGE: Final = "application/merge-patch+json"

Json = dict[str, Any]


class ApiRequest(NamedTuple):
    """A request to the API server."""

    method: str
    path: str
    body: Json | None = None
    kind: str = "application/json"
    query: Mapping[str, str] = {}


class CardCommand(NamedTuple):
    """`cordon` or `uncordon` of a card of the first node, by its index at the start."""

    command: str
    card: int


class NodeCordon(NamedTuple):
    """`kubectl cordon` of the second node, or its end."""

    is_closed: bool


class NewLimits(NamedTuple):
    """`vgpu set` for all containers of a pod: a part of the memory that they were given, and a percentage of time."""

    pod: str  # NAMESPACE/NAME
    memory_percent: int
    cores: int | None


class CardMove(NamedTuple):
    """A card that moves, by the indexes of its node and of the card on it then."""

    source: int
    card: int


Effect = ApiRequest | CardCommand | NodeCordon | NewLimits


class Step(NamedTuple):
    """One action with all that it does, and the pause after it."""

    action: str
    effects: Sequence[Effect]
    pause_s: float


class Draft:
    """The walk's randomness, what it has created and not deleted, and the effects of the step at hand."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.alive: dict[str, str] = {}  # path in the API -> name of the first container
        self.jobs: list[str] = []  # paths in the API
        self._effects: list[Effect] = []
        self._count = 0

    def name(self, word: str) -> str:
        """Return a new name."""
        self._count += 1
        return f"{word}-{self._count}"

    def add(self, effect: Effect) -> None:
        """Add an effect to the step at hand."""
        self._effects.append(effect)

    def taken(self) -> Sequence[Effect]:
        """Return the effects of the step at hand, and begin the next one."""
        effects, self._effects = self._effects, []
        return effects

    def create(self, manifest: Json, namespace: str = NAMESPACE, *, ends: bool = False) -> None:
        """Create a pod, which later steps may change and delete unless it ends by itself."""
        path = f"/api/v1/namespaces/{namespace}/pods"
        self.add(ApiRequest("POST", path, manifest))
        if not ends:
            self.alive[f"{path}/{manifest['metadata']['name']}"] = manifest["spec"]["containers"][0]["name"]

    def create_job(self, manifest: Json, *, ends: bool = False) -> None:
        """Create a Job in Kueue's queue, which later steps may delete unless it ends by itself."""
        path = f"/apis/batch/v1/namespaces/{QUEUED}/jobs"
        self.add(ApiRequest("POST", path, manifest))
        if not ends:
            self.jobs.append(f"{path}/{manifest['metadata']['name']}")

    def delete_job(self) -> None:
        """Delete one of the Jobs that were created and not deleted, with its pods."""
        if self.jobs:
            path = self.jobs.pop(self.chance.randrange(len(self.jobs)))
            self.add(ApiRequest("DELETE", path, query={"propagationPolicy": "Background"}))

    def some(self, most: int) -> list[str]:
        """Return the paths of one pod or more of those that were created and not deleted."""
        return self.chance.sample(list(self.alive), min(len(self.alive), self.chance.randint(1, most)))

    def delete(self, path: str, **query: str) -> None:
        """Delete a pod."""
        self.alive.pop(path)
        self.add(ApiRequest("DELETE", path, query=query))

    def resize(self, path: str, cpu: str) -> None:
        """Change the CPU that a pod requests in place."""
        containers = [{"name": self.alive[path], "resources": {"requests": {"cpu": cpu}}}]
        self.add(ApiRequest("PATCH", f"{path}/resize", {"spec": {"containers": containers}}, _STRATEGIC))

    def set_limits(self, path: str, memory_percent: int, cores: int | None) -> None:
        """Change the limits of a pod's containers on its node."""
        *_, namespace, _, name = path.split("/")
        self.add(NewLimits(f"{namespace}/{name}", memory_percent, cores))


Action = Callable[[Draft], None]


def rounds(seed: int, table: Sequence[tuple[int, Action]], when_full: Action) -> Iterator[list[Step]]:
    """Yield the steps of each round without end; `table` says how often an action is drawn."""
    draft = Draft(seed)
    while True:
        yield [_step(draft, table, when_full) for _ in range(STEPS)]


def _step(draft: Draft, table: Sequence[tuple[int, Action]], when_full: Action) -> Step:
    weights, choices = zip(*table, strict=True)
    drawn: Action = draft.chance.choices(choices, weights)[0]
    action = when_full if len(draft.alive) + len(draft.jobs) > MOST_PODS else drawn
    action(draft)
    return Step(action.__name__, draft.taken(), draft.chance.choice(_PAUSES_S))


def node_cordon(node: str, *, is_closed: bool) -> ApiRequest:
    """Return the request of `kubectl cordon` and `kubectl uncordon`."""
    body = {"spec": {"unschedulable": True if is_closed else None}}
    return ApiRequest("PATCH", f"/api/v1/nodes/{node}", body, MERGE)


def card_move(cards: Sequence[int], chance: random.Random) -> CardMove | None:
    """Draw a card that moves to the other one of two nodes, by how many cards each has; None where it would have few.

    Only moves change how many there are, so that a seed decides each of them, whatever pods run.
    """
    source, place = chance.randrange(len(cards)), chance.random()
    if cards[source] <= FEWEST_CARDS:
        return None
    return CardMove(source, int(place * cards[source]))
