"""What the walk does: a table of actions of users and administrators. Each adds its effects to a draft of the plan.

A request that the API server refuses, or cannot answer just now, is no error.
"""

from collections.abc import Sequence
from typing import Final

from tests.e2e import churn
from tests.e2e.pod_namespace import container, pod
from tests.e2e.walk import queue
from tests.e2e.walk.plan import HIGH, LIMITED, QUEUED, Action, CardCommand, Draft, NodeCordon
from vgpu.domain import names

_CARDS: Final = 4  # of the first node


def share(draft: Draft) -> None:
    """A share of a card, often without guaranteed time."""
    chance = draft.chance
    cores = {"gpu_cores": chance.randint(1, 60)} if chance.random() < 0.6 else {}
    draft.create(churn.small(draft.name("share"), gpu_mem=chance.choice((1, 256, 700, 8192, 20480, 40960)), **cores))


def percent(draft: Draft) -> None:
    part = str(draft.chance.choice((5, 10, 14, 20, 25, 33, 50)))
    limits = {names.GPU_MEM_PERCENTAGE: part}
    draft.create(pod(draft.name("percent"), container(limits=limits) | churn.PAUSE))


def several(draft: Draft) -> None:
    """Two or three cards of one node."""
    cards = draft.chance.choice((2, 3))
    draft.create(churn.small(draft.name("several"), gpu_mem=cards * 4096, gpu_cores=cards * 10, gpu=cards))


def whole(draft: Draft) -> None:
    draft.create(churn.small(draft.name("whole"), gpu=draft.chance.choice((1, 1, 2))))


def two_containers(draft: Draft) -> None:
    both = [container(name, gpu_mem=2048, gpu_cores=5) | churn.PAUSE for name in ("one", "two")]
    draft.create(pod(draft.name("two"), *both))


def short(draft: Draft) -> None:
    """A pod that ends by itself."""
    manifest = pod(draft.name("short"), container(command=("sleep", "1"), gpu_mem=1024))
    manifest["spec"]["restartPolicy"] = "Never"
    draft.create(manifest)


def limited(draft: Draft) -> None:
    """A pod in the namespace with a quota, which may refuse it."""
    mib = draft.chance.choice((1024, 8192, 20480))
    draft.create(churn.small(draft.name("limited"), gpu_mem=mib), LIMITED)


def high(draft: Draft) -> None:
    """A pod of high priority, which may preempt."""
    manifest = churn.small(draft.name("high"), gpu_mem=draft.chance.choice((8192, 40960)), gpu_cores=20)
    manifest["spec"]["priorityClassName"] = HIGH
    draft.create(manifest)


def gang(draft: Draft) -> None:
    size, name = draft.chance.choice((2, 3, 6)), draft.name("gang")
    for member in range(size):
        manifest = churn.small(f"{name}-{member}", gpu_mem=draft.chance.choice((4096, 30720)))
        manifest["metadata"]["annotations"] = {names.GANG: name, names.GANG_SIZE: str(size)}
        draft.create(manifest)


def queued_job(draft: Draft) -> None:
    """A Job that Kueue holds back until its quota has room; most run until they are deleted."""
    size, ends = draft.chance.choice((1, 1, 2)), draft.chance.random() < 0.3
    limits = queue.limits(draft.chance)
    draft.create_job(queue.job(draft.name("job"), 1 if ends else size, limits, ends=ends), ends=ends)


def queued_pod(draft: Draft) -> None:
    """A pod of its own that Kueue holds back."""
    manifest = pod(draft.name("queued"), container(limits=queue.limits(draft.chance)) | churn.PAUSE)
    manifest["metadata"]["labels"] = dict(queue.LABELS)
    draft.create(manifest, QUEUED)


def delete_job(draft: Draft) -> None:
    draft.delete_job()


def part_of_a_gang(draft: Draft) -> None:
    """A gang with a member that never comes."""
    name = draft.name("incomplete")
    manifest = churn.small(f"{name}-0", gpu_mem=4096)
    manifest["metadata"]["annotations"] = {names.GANG: name, names.GANG_SIZE: "2"}
    draft.create(manifest)


def delete(draft: Draft) -> None:
    for path in draft.some(3):
        draft.delete(path)


def force_delete(draft: Draft) -> None:
    for path in draft.some(2):
        draft.delete(path, gracePeriodSeconds="0")


def resize(draft: Draft) -> None:
    """Change the CPU of a pod in place."""
    for path in draft.some(1):
        draft.resize(path, f"{draft.chance.randint(1, 20)}m")


def set_limits(draft: Draft) -> None:
    """Change the limits of a pod's share while it runs."""
    for path in draft.some(2):
        draft.set_limits(path, draft.chance.choice((25, 50, 75, 100)), draft.chance.choice((None, 5, 40)))


def cordon_card(draft: Draft) -> None:
    draft.add(CardCommand("cordon", draft.chance.randrange(_CARDS)))


def uncordon_card(draft: Draft) -> None:
    draft.add(CardCommand("uncordon", draft.chance.randrange(_CARDS)))


def cordon_node(draft: Draft) -> None:
    draft.add(NodeCordon(is_closed=True))


def uncordon_node(draft: Draft) -> None:
    draft.add(NodeCordon(is_closed=False))


ACTIONS: Final[Sequence[tuple[int, Action]]] = (  # how often, and what
    (8, share), (4, percent), (3, several), (2, whole), (3, two_containers), (2, short), (3, limited), (3, high),
    (3, gang), (1, part_of_a_gang), (4, queued_job), (2, queued_pod), (3, delete_job), (9, delete), (3, force_delete),
    (2, resize), (3, set_limits), (1, cordon_card), (3, uncordon_card), (1, cordon_node), (3, uncordon_node),
)  # fmt: skip
