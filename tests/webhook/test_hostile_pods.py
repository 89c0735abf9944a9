"""The webhook decides about every hostile pod: within bounded time, never as a bad request or an error."""

import json
import time

import httpx
import pytest

from extender.state.pod_reader import PodReader
from tests.hostile_pods import corpus
from tests.hostile_pods.case import Case
from tests.webhook import builders
from vgpu.domain.asks import manifest
from webhook import app

pytestmark = pytest.mark.heavy

RULES = builders.rules(builders.H100)
CPU_S = 1.0
_BEFORE = (
    b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u1","operation":"CREATE","object":'
)


async def decided(path: str, pod: bytes) -> httpx.Response:
    transport = httpx.ASGITransport(app.create(RULES, lambda: True, builders.metrics()), raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="https://webhook") as client:
        return await client.post(path, content=_BEFORE + pod + b"}}")


async def test_every_pod_is_allowed_or_denied() -> None:
    wrong = [found for case in corpus.cases() if (found := await problem(case))]
    assert not wrong, "\n".join(wrong)


async def problem(case: Case) -> str:
    """Return how the webhook fails on a pod; empty where it decides."""
    for path in ("/mutate", "/validate"):
        started = time.process_time()
        answer = await decided(path, case.body(name="p"))
        taken = time.process_time() - started
        if answer.status_code != httpx.codes.OK:
            return f"{case.kind}, seed {case.seed}: {path} answers {answer.status_code} {answer.text[:100]}"
        if taken > CPU_S:
            return f"{case.kind}, seed {case.seed}: {path} takes {taken:.1f} s of CPU time"
    return ""


async def test_an_allowed_pod_is_one_that_the_extender_can_place() -> None:
    for case in corpus.cases():
        if case.raw:
            continue
        answer = await decided("/mutate", case.body(name="p"))
        if answer.status_code != httpx.codes.OK or not builders.response(answer.content)["allowed"]:
            continue
        mutated = builders.apply(builders.patch_of(answer.content), json.loads(case.body(name="p")))
        answer = await decided("/validate", json.dumps(mutated).encode())
        if builders.response(answer.content)["allowed"]:
            seen = PodReader().decoded(mutated)
            assert seen.parsed.request is None or seen.is_admitted(256), case.kind
            assert not seen.parsed.problems or not manifest.wants_gpu(mutated), case.kind
