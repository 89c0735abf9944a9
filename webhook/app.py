"""The webhook over HTTP: `/mutate`, `/validate`, `/healthz` and `/readyz`."""

import logging
from collections.abc import Callable
from typing import Final

from fastapi import FastAPI, Request, Response
from starlette.requests import ClientDisconnect

from vgpu.adapters import deep_json, http_body
from webhook import admission, wire
from webhook.admission import ReviewAnswer, ReviewOutcome
from webhook.metrics import ReviewMetrics
from webhook.rules import AdmissionSettings

MAX_BODY: Final = 8 << 20  # the API server limits an object to 3 MiB, and UPDATE sends two objects
log = logging.getLogger(__name__)

_JSON: Final = "application/json"
_TEXT: Final = "text/plain"


def create(rules: AdmissionSettings, is_ready: Callable[[], bool], metrics: ReviewMetrics) -> FastAPI:
    """Build the application; `is_ready` says whether the cluster's cards are known."""
    app = FastAPI(title="vgpushare webhook", docs_url=None, redoc_url=None, openapi_url=None)

    @app.post("/mutate")
    async def mutate(request: Request) -> Response:
        return await metrics.timed("mutate", _answer(request, rules, admission.mutating, metrics))

    @app.post("/validate")
    async def validate(request: Request) -> Response:
        return await metrics.timed("validate", _answer(request, rules, admission.validating, metrics))

    @app.get("/healthz")
    async def healthz() -> Response:
        return Response("ok", media_type=_TEXT)

    @app.get("/readyz")
    async def readyz() -> Response:
        if is_ready():
            return Response("ok", media_type=_TEXT)
        return Response("the cluster's cards are not known yet", 503, media_type=_TEXT)

    return app


async def _answer(
    request: Request,
    rules: AdmissionSettings,
    decide: Callable[[wire.ReviewRequest, AdmissionSettings], ReviewAnswer],
    metrics: ReviewMetrics,
) -> Response:
    """Answer a review; a review that cannot be read is denied, for failurePolicy Ignore would let the pod in."""
    try:
        review = await _review(request)
        answer = _decided(review, rules, decide)
    except wire.UnreadableReview as error:
        log.warning("denied review %s: %s", error.uid, error)
        answer = ReviewAnswer(wire.deny(error.uid, str(error)), ReviewOutcome.UNREADABLE)
    except ClientDisconnect:  # no answer can arrive, and the API server asks again
        return Response(status_code=400)
    metrics.count(answer.outcome)
    return Response(answer.body, media_type=_JSON)


async def _review(request: Request) -> wire.ReviewRequest:
    body = await http_body.read(request.stream(), MAX_BODY, request.headers.get("content-length"))
    if body.is_too_long:
        raise wire.UnreadableReview(wire.uid_in(body.data), f"the pod is longer than {MAX_BODY >> 20} MiB of JSON")
    return await deep_json.decode(wire.decode, body.data)


def _decided(
    review: wire.ReviewRequest,
    rules: AdmissionSettings,
    decide: Callable[[wire.ReviewRequest, AdmissionSettings], ReviewAnswer],
) -> ReviewAnswer:
    try:
        return decide(review, rules)
    except Exception as error:
        log.exception("review %s", review.uid)
        why = f"the webhook failed on this pod ({type(error).__name__}); its log says more"
        raise wire.UnreadableReview(review.uid, why) from error
