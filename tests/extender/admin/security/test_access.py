"""Who may see and do what: tokens, rights per namespace, hosts, rates and sizes."""

from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest

from extender.admin.problems import AdminProblem
from extender.admin.security.access import READ_PODS, Caller
from extender.admin.security.token_reviews import CACHE_S, KubernetesAccess
from tests.extender.admin.conftest import Admin, Opened
from tests.extender.conftest import World
from vgpu.adapters.kubernetes.client import KubernetesClient
from vgpu.domain import names
from vgpu.domain.errors import KubernetesError


@dataclass
class Reviewer(KubernetesClient):
    """An API server that knows some tokens and rights; other requests go to the real client."""

    real: KubernetesClient
    users: dict[str, dict[str, Any]] = field(default_factory=dict)
    rights: set[tuple[str, str, str, str]] = field(default_factory=set)  # user, verb, resource, namespace
    asked: list[dict[str, Any]] = field(default_factory=list)
    is_down: bool = False

    async def post(self, path: str, body: Any, *, timeout: float = 30) -> bytes:  # noqa: ARG002 - the client's
        spec = body["spec"]
        self.asked.append(body)
        if self.is_down:
            raise KubernetesError(0, "TimeoutError", "")
        if body["kind"] == "TokenReview":
            user = self.users.get(spec["token"])
            known = user is not None and user.get("audiences", []) == spec.get("audiences", [])
            return msgspec.json.encode({"status": {"authenticated": known, "user": user or {}}})
        what = spec["resourceAttributes"]
        asked = (spec["user"], what["verb"], what["resource"])
        allowed = bool({(*asked, ""), (*asked, what.get("namespace", ""))} & self.rights)
        return msgspec.json.encode({"status": {"allowed": allowed}})

    async def get(self, path: str, params: Any = None, *, timeout: float = 30) -> bytes:
        return await self.real.get(path, params, timeout=timeout)

    async def patch(self, path: str, body: Any, **more: Any) -> bytes:
        return await self.real.patch(path, body, **more)


@pytest.fixture
def reviewer(world: World) -> Reviewer:
    users = {name: {"username": name, "groups": ["g"], "uid": f"{name}-uid"} for name in ("ann", "bob", "admin")}
    users["minted"] = {"username": "admin", "audiences": [names.ADMIN_AUDIENCE]}
    rights = {
        ("ann", "get", "pods", "default"),
        ("admin", "get", "pods", ""),
        ("admin", "list", "gpunodes", ""),
        ("admin", "patch", "gpunodes", ""),
        ("admin", "create", "pods", "default"),
    }
    return Reviewer(world.client, users, rights)


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


async def statuses(admin: Admin, token: str) -> dict[str, int]:
    """Return the status of each request with a token."""
    found = {}
    for method, path in (
        ("GET", "/nodes"), ("GET", "/gpus"), ("GET", "/summary"), ("GET", "/pods"), ("GET", "/pending"),
        ("GET", "/groups"), ("GET", "/pods?namespace=default"),
        ("GET", "/pods/default/pod-1"), ("GET", "/pods/default/pod-1/explain"),
        ("POST", "/gpus/GPU-n1-0/cordon"), ("GET", "/events?kind=gpu"), ("GET", "/events?namespace=default"),
    ):  # fmt: skip
        if path.startswith("/events") and token in ("ann", "admin"):
            continue  # streams that stay open have tests of their own
        answer = await admin.http.request(method, f"/api/v1{path}", headers=bearer(token))
        found[path] = answer.status_code
    return found


@pytest.mark.heavy
async def test_each_caller_sees_what_the_callers_rights_are_for(opened: Opened, reviewer: Reviewer) -> None:
    async with opened(client=reviewer, has_reviews=True) as admin:
        await admin.world.create_pod(gpu_mem=256)
        await admin.fresh()
        assert set((await statuses(admin, "wrong")).values()) == {401}
        assert set((await statuses(admin, "admin")).values()) == {200}
        ann = await statuses(admin, "ann")
        assert {path for path, status in ann.items() if status == 403} == {
            "/nodes", "/gpus", "/summary", "/gpus/GPU-n1-0/cordon",
        }  # fmt: skip
        bob = await statuses(admin, "bob")
        assert {path for path, status in bob.items() if status == 200} == {"/pods", "/pending", "/groups"}
        assert (await admin.http.get("/api/v1/pods", headers=bearer("bob"))).json()["items"] == []
        assert len((await admin.http.get("/api/v1/pods", headers=bearer("ann"))).json()["items"]) == 1
        refused = await admin.http.post("/api/v1/gpus/GPU-n1-0/cordon", headers=bearer("ann"))
        assert refused.json()["detail"] == "ann may not patch gpunodes.vgpu.io n1"
        assert [(action.user, action.outcome) for action in admin.actions][-1] == ("ann", refused.json()["detail"])


async def test_pods_of_a_card_are_shown_to_those_who_may_see_their_namespaces(
    opened: Opened, reviewer: Reviewer
) -> None:
    reviewer.rights.add(("bob", "list", "gpunodes", ""))
    async with opened(client=reviewer, has_reviews=True) as admin:
        pod = await admin.world.create_pod(gpu_mem=256)
        await admin.world.bind(pod, "n1")
        await admin.world.until_bound_is_watched(pod)
        await admin.fresh()
        for token, names_of in (("admin", ["pod-1"]), ("bob", [])):
            (gpu,) = [
                item for item in (await admin.http.get("/api/v1/gpus", headers=bearer(token))).json()["items"]
                if item["podCount"]
            ]  # fmt: skip
            assert [holder["pod"] for holder in gpu["pods"]] == names_of


async def test_groups_are_shown_to_those_who_may_see_a_pod_of_them(opened: Opened, reviewer: Reviewer) -> None:
    async with opened(client=reviewer, has_reviews=True) as admin:
        await admin.world.serve_space("n1")
        pod = await admin.world.create_pod(metadata={"annotations": {names.COMPUTE_POLICY: "space"}}, gpu_mem=256)
        assert await admin.world.bind(pod, "n1") == ""
        await admin.world.until_bound_is_watched(pod)
        await admin.fresh()
        for token, groups in (("admin", ["default"]), ("ann", ["default"]), ("bob", [])):
            answer = await admin.http.get("/api/v1/groups", headers=bearer(token))
            assert [row["spaceGroup"] for row in answer.json()["items"]] == groups, token
        refused = await admin.http.get("/api/v1/groups?namespace=default", headers=bearer("bob"))
        assert (refused.status_code, refused.json()["detail"]) == (403, "bob may not get pods in namespace default")


async def test_the_token_may_stand_in_a_header_that_the_api_server_passes_on(
    opened: Opened, reviewer: Reviewer
) -> None:
    async with opened(client=reviewer, has_reviews=True) as admin:
        for headers, status in (
            ({"X-Vgpu-Token": "admin"}, 200),
            ({"X-Vgpu-Token": "minted"}, 200),  # of a TokenRequest for our audience
            ({"X-Vgpu-Token": "x" * 20_000}, 401),
            ({"Authorization": "Basic admin"}, 401),
            ({}, 401),
        ):
            answer = await admin.http.get("/api/v1/nodes", headers=headers)
            assert answer.status_code == status, headers
        assert answer.headers["www-authenticate"] == "Bearer"


async def test_answers_are_cached_for_seconds(reviewer: Reviewer) -> None:
    now = [0.0]
    access = KubernetesAccess(reviewer, lambda: now[0])
    for _ in range(3):
        caller = await access.authenticate("ann", "")
        assert not await access.may(caller, READ_PODS)
    assert [review["kind"] for review in reviewer.asked] == ["TokenReview", "SubjectAccessReview"]
    del reviewer.users["ann"]
    now[0] = CACHE_S + 1
    with pytest.raises(AdminProblem, match="does not accept the token"):
        await access.authenticate("ann", "")


async def test_an_api_server_that_does_not_answer_is_503_and_is_asked_again(reviewer: Reviewer) -> None:
    access = KubernetesAccess(reviewer, lambda: 0.0)
    reviewer.is_down = True
    with pytest.raises(AdminProblem) as failed:
        await access.authenticate("ann", "")
    assert failed.value.status == 503
    reviewer.is_down = False
    assert await access.authenticate("ann", "") == Caller("ann", "ann-uid", ("g",))


async def test_new_tokens_are_reviewed_at_a_bounded_rate(reviewer: Reviewer) -> None:
    access = KubernetesAccess(reviewer, lambda: 0.0)
    outcomes = []
    for number in range(110):
        try:
            await access.authenticate(f"guess-{number}", "")
        except AdminProblem as problem:
            outcomes.append(int(problem.status))
    assert outcomes == [401] * 100 + [429] * 10


async def test_wrong_tokens_keep_nobody_out_who_is_in(reviewer: Reviewer) -> None:
    now = [0.0]
    access = KubernetesAccess(reviewer, lambda: now[0])
    await access.authenticate("ann", "")
    now[0] = CACHE_S + 1
    for number in range(110):
        with pytest.raises(AdminProblem):
            await access.authenticate(f"guess-{number}", "")
    assert (await access.authenticate("ann", "")).name == "ann"
    del reviewer.users["ann"]
    outcomes = []
    for _ in range(2):
        now[0] += CACHE_S + 1
        for number in range(400):
            with pytest.raises(AdminProblem):
                await access.authenticate(f"guess-{now[0]}-{number}", "")
        with pytest.raises(AdminProblem) as refused:
            await access.authenticate("ann", "")
        outcomes.append(int(refused.value.status))
    assert outcomes == [401, 429]  # once it is refused, a token is like any other


async def test_on_loopback_another_sites_page_is_refused(admin: Admin) -> None:
    answer = await admin.http.get("/api/v1/nodes", headers={"Host": "evil.example:9871"})
    assert answer.status_code == 421
    for host in ("localhost:9871", "[::1]:9871", "127.0.0.1"):
        assert (await admin.http.get("/api/v1/nodes", headers={"Host": host})).status_code == 200


async def test_a_static_token(opened: Opened) -> None:
    async with opened(token="t" * 32) as admin:
        assert (await admin.http.get("/api/v1/nodes", headers=bearer("t" * 32))).status_code == 200
        assert (await admin.http.get("/api/v1/nodes", headers=bearer("t"))).status_code == 401
        assert (await admin.http.get("/api/v1/nodes")).status_code == 401


async def test_too_many_requests_are_429_with_the_time_to_wait(admin: Admin) -> None:
    found = [(await admin.http.get("/api/v1/nodes")) for _ in range(110)]
    assert [answer.status_code for answer in found] == [200] * 100 + [429] * 10
    assert found[-1].headers["retry-after"] == "1"


async def test_a_body_beyond_the_limit_is_refused_before_it_is_read(admin: Admin) -> None:
    sent = 0

    async def body() -> Any:
        nonlocal sent
        for _ in range(100):
            sent += 1
            yield b"x" * (1 << 20)

    answer = await admin.http.post("/api/v1/simulate", content=body(), headers={"Content-Type": "application/json"})
    assert answer.status_code == 413
    length = {"Content-Length": str(100 << 20), "Content-Type": "application/json"}
    declared = await admin.http.post("/api/v1/simulate", content=body(), headers=length)
    assert (declared.status_code, declared.headers["content-type"]) == (413, "application/problem+json")


async def test_on_loopback_a_form_of_another_site_changes_nothing(admin: Admin) -> None:
    for origin, status in (("https://evil.example", 403), ("null", 403), ("http://localhost:9871", 404)):
        answer = await admin.http.post("/api/v1/gpus/GPU-none/cordon", headers={"Origin": origin})
        assert answer.status_code == status, origin
    assert [action.outcome for action in admin.actions] == ["card GPU-none does not exist, or you may not see it"]
