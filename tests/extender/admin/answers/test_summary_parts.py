"""After any changes, a summary that is added up from kept parts equals one that is computed from all objects."""

import asyncio

import pytest

from extender.admin.answers import findings
from extender.admin.answers.kept_parts import KeptParts
from extender.admin.answers.summary_parts import SummaryParts
from tests.extender.admin.conftest import CopiedSnapshots, shown
from tests.extender.admin.exchange.test_snapshot_changes import Changing
from tests.extender.conftest import World
from vgpu.domain.identifiers import DEFAULT_NAMESPACE, Namespace

STEPS = 150


@pytest.mark.parametrize("seed", range(4))
async def test_kept_parts_are_those_of_the_snapshot(world: World, seed: int) -> None:
    uid = (await world.create_pod(gpu_mem=256))["metadata"]["uid"]
    world.stop_watching()
    await asyncio.sleep(0)
    source, kept = CopiedSnapshots(shown(world)), SummaryParts()
    changing = Changing(world, world.cluster.objects.pods[uid], seed)
    found = 0
    for _ in range(STEPS):
        for _ in range(changing.random.randrange(4)):
            changing.step()
        snapshot = await source.take()
        parts = kept.of(snapshot)
        assert parts == SummaryParts().of(snapshot)
        for namespace in (DEFAULT_NAMESPACE, Namespace("other")):
            some, every = (
                findings.of(snapshot, namespace.__eq__, (), pods) for pods in (parts.unsound, snapshot.pods.values())
            )
            assert some == every
            found += len(every)
    assert found > 20, "there were findings to compare"


async def test_only_what_has_changed_is_computed_again() -> None:
    kept, made = KeptParts[str, object, object, int](), list[object]()

    def make(one: object, _: object) -> int:
        made.append(one)
        return len(made)

    a, b, c = object(), object(), object()
    assert kept.of([("a", a, c), ("b", b, c)], make) == [1, 2]
    assert kept.of([("b", b, c), ("a", a, c)], make) == [2, 1]
    assert kept.of([("a", a, b)], make) == [3], "one of the two objects is another one"
    assert kept.of([("a", a, b), ("b", b, c)], make) == [3, 4], "what was not asked for is forgotten"
