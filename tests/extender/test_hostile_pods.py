"""The extender answers filter and prioritize about every hostile pod, also about pods that no webhook has seen."""

import json
import time
from collections.abc import Awaitable, Callable

from extender.protocol import wire
from tests.extender.conftest import World
from tests.hostile_pods import corpus
from tests.hostile_pods.case import Case

CPU_S = 1.0


async def test_every_pod_is_answered_within_a_second_of_cpu_time(world: World) -> None:
    wrong = [found for case in corpus.cases() if (found := await problem(world, case))]
    assert not wrong, "\n".join(wrong)


async def problem(world: World, case: Case) -> str:
    """Return how the extender fails on a pod; empty where it answers, or refuses the call as malformed."""
    pod = case.body(name="p", namespace="default", uid=f"uid-{case.seed}")
    body = b'{"Pod":' + pod + b',"NodeNames":["n1","n2","n3"]}'
    for verb in (world.verbs.filter, world.verbs.prioritize):
        started = time.process_time()
        if failure := await failed(verb, body):
            return f"{case.kind}, seed {case.seed}: {failure}"
        taken = time.process_time() - started
        if taken > CPU_S:
            return f"{case.kind}, seed {case.seed}: {taken:.1f} s of CPU time"
    return ""


async def failed(verb: Callable[[bytes], Awaitable[bytes]], body: bytes) -> str:
    try:
        json.loads(await verb(body))
    except wire.MalformedCall:
        return ""
    except Exception as error:  # noqa: BLE001 - what the test looks for
        return f"{type(error).__name__}: {error}"[:200]
    return ""
