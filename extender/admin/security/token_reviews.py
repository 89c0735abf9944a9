"""Authentication and authorization by the API server: TokenReview and SubjectAccessReview, cached for seconds.

https://kubernetes.io/docs/reference/kubernetes-api/authentication-resources/token-review-v1/
Each answer is kept for `CACHE_S`, a refusal too; a right that is taken away works that long at most. Equal questions in
flight share one review. Reviews of new tokens are limited, all together, so that wrong tokens cannot flood the API
server. A token that was accepted before is reviewed again under a limit of its caller: whoever sends wrong ones keeps
nobody out who is in.
"""

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable, Mapping
from http import HTTPStatus
from typing import Any, Final, Generic, Protocol, TypeVar

import msgspec

from extender.admin.problems import AdminProblem
from extender.admin.security.access import AccessRequest, Caller, unauthorized
from extender.admin.security.rate_limits import RateLimits
from vgpu.domain import names
from vgpu.domain.errors import KubernetesError
from vgpu.pacing.fair_cache import FairCache
from vgpu.pacing.token_bucket import TokenBucket

CACHE_S: Final = 5.0
MAX_CACHED: Final = 10_000
TIMEOUT_S: Final = 5.0
REVIEWS_BURST: Final = 100
REVIEWS_PER_S: Final = 50.0
AUDIENCES: Final[tuple[list[str], ...]] = ([], [names.ADMIN_AUDIENCE])  # the API server's own, and ours

V = TypeVar("V")


class Poster(Protocol):
    """The part of the API client that reviews use."""

    async def post(self, path: str, body: Any, *, timeout: float) -> bytes:
        """POST a body. Raises KubernetesError."""


class ExpiringCache(Generic[V]):
    """Answers by key, each for `CACHE_S`; the oldest leave where there are too many. `clock` is monotonic."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._known: OrderedDict[Hashable, tuple[float, asyncio.Future[V]]] = OrderedDict()

    async def get(self, key: Hashable, ask: Callable[[], Awaitable[V]]) -> V:
        """Return the answer; a failed question is not remembered."""
        at, known = self._known.get(key, (float("-inf"), None))
        if known is None or self._clock() - at > CACHE_S:
            known = asyncio.ensure_future(ask())
            self._known[key] = self._clock(), known
            self._known.move_to_end(key)
            known.add_done_callback(lambda done: self._forget_failure(key, done))
            if len(self._known) > MAX_CACHED:
                self._known.popitem(last=False)
        return await asyncio.shield(known)

    def _forget_failure(self, key: Hashable, done: "asyncio.Future[V]") -> None:
        failed = done.cancelled() or done.exception() is not None
        if failed and self._known.get(key, (0.0, None))[1] is done:
            del self._known[key]


class KubernetesAccess:
    """Asks the API server. `clock` is monotonic, in seconds."""

    def __init__(self, client: Poster, clock: Callable[[], float]) -> None:
        self._client = client
        self._callers: ExpiringCache[Caller | None] = ExpiringCache(clock)
        self._rights: ExpiringCache[bool] = ExpiringCache(clock)
        self._new_tokens = TokenBucket(REVIEWS_PER_S, REVIEWS_BURST, clock)
        self._accepted = FairCache[str, bytes, str](MAX_CACHED)  # whose limits count, by the digest of a token
        self._reviewed_again = RateLimits(clock)

    async def authenticate(self, token: str, host: str, origin: str = "") -> Caller:  # noqa: ARG002 - the protocol
        """Return the user of a token. Raises AdminProblem: 401 for a token that is wrong, expired or missing."""
        if not token:
            raise unauthorized(f"give a bearer token, in Authorization or in {names.ADMIN_TOKEN_HEADER}")
        key = hashlib.blake2b(token.encode(), digest_size=32).digest()
        caller = await _reviewed(self._callers.get(key, lambda: self._review_token(key, token)))
        if caller is None:
            raise unauthorized("the API server does not accept the token: it is wrong, expired or for another audience")
        return caller

    async def may(self, caller: Caller, action: AccessRequest) -> bool:
        """Ask whether a caller has a right. Raises AdminProblem where the API server does not answer."""
        key = (caller.name, caller.uid, caller.groups, action)
        return await _reviewed(self._rights.get(key, lambda: self._review_access(caller, action)))

    async def _review_token(self, key: bytes, token: str) -> Caller | None:
        known = self._accepted.get(key)
        if known is not None:
            self._reviewed_again.check(known)
        elif wait_s := self._new_tokens.take():
            raise AdminProblem(
                HTTPStatus.TOO_MANY_REQUESTS, "too many new tokens", headers={"Retry-After": str(int(wait_s) + 1)}
            )
        for audiences in AUDIENCES:
            spec = {"token": token} | ({"audiences": audiences} if audiences else {})
            status = await self._post("authentication.k8s.io", "TokenReview", "tokenreviews", spec)
            if status.get("authenticated") is True:
                caller = _caller(status.get("user") or {})
                self._accepted.put(caller.counted_as, key, caller.counted_as)
                return caller
        self._accepted.pop(key)
        return None

    async def _review_access(self, caller: Caller, action: AccessRequest) -> bool:
        asked = {
            "verb": action.verb, "resource": action.resource, "group": action.group,
            "namespace": action.namespace, "name": action.name,
        }  # fmt: skip
        spec = {
            "user": caller.name,
            "uid": caller.uid,
            "groups": list(caller.groups),
            "extra": {key: list(values) for key, values in caller.extra.items()},
            "resourceAttributes": {key: value for key, value in asked.items() if value},
        }
        status = await self._post("authorization.k8s.io", "SubjectAccessReview", "subjectaccessreviews", spec)
        return status.get("allowed") is True and status.get("denied") is not True

    async def _post(self, group: str, kind: str, resource: str, spec: Mapping[str, Any]) -> dict[str, Any]:
        body = {"apiVersion": f"{group}/v1", "kind": kind, "metadata": {}, "spec": spec}
        answer = msgspec.json.decode(await self._client.post(f"/apis/{group}/v1/{resource}", body, timeout=TIMEOUT_S))
        return answer.get("status") or {}


async def _reviewed(answer: Awaitable[V]) -> V:
    try:
        return await answer
    except KubernetesError as error:
        detail = f"the API server does not answer the review: {error.reason or error.status}"
        raise AdminProblem(HTTPStatus.SERVICE_UNAVAILABLE, detail, headers={"Retry-After": "2"}) from error


def _caller(user: Mapping[str, Any]) -> Caller:
    extra = {str(key): tuple(map(str, values or ())) for key, values in (user.get("extra") or {}).items()}
    groups = tuple(map(str, user.get("groups") or ()))
    return Caller(str(user.get("username", "")), str(user.get("uid", "")), groups, extra)
