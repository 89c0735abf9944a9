"""Questions about the history that reach a follower: the leading replica answers them, over real sockets."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from extender.admin import server, serving_certificate
from extender.admin.exchange.messages import Listener
from extender.admin.routes import leader_relay
from extender.lead.admin_address import AdminAddress, LeadingReplica
from tests.extender.admin.conftest import Admin, CopiedSnapshots, Opened, shown
from tests.extender.admin.routes.test_history import Asked
from tests.extender.admin.security.test_access import Reviewer, bearer, reviewer
from tests.extender.admin.test_server import free_port, until_open
from tests.extender.conftest import World
from tests.extender.test_main import certificate
from vgpu.adapters.pinned_http import PinnedHttp
from vgpu.domain import names
from vgpu.domain.errors import ReplicaUnreachable

__all__ = ["reviewer"]  # a fixture

PATHS = ("/usage", "/rightsize", "/history")
HERE = LeadingReplica("b", is_here=True)


class Lead:
    """Which replica leads, as the next snapshot of the follower shows it."""

    def __init__(self, leader: LeadingReplica) -> None:
        self.leader = leader

    def __call__(self) -> LeadingReplica:
        return self.leader


@dataclass
class Two:
    """A follower, and the leading replica behind a port."""

    follower: Admin
    leads: Lead
    here: Asked  # the follower's history
    there: Asked
    address: AdminAddress
    leader: Admin

    async def led_by(self, leader: LeadingReplica) -> None:
        self.leads.leader = leader
        await self.follower.fresh()


@pytest.fixture
def two(opened: Opened, world: World, reviewer: Reviewer, tmp_path: Path) -> Any:
    """Open both; `tls` says whether the leading one serves TLS with a certificate of its own, or of a file."""

    @asynccontextmanager
    async def opened_two(tls: str = "own", **parts: Any) -> AsyncIterator[Two]:
        here, there = Asked(), Asked()
        there.began_ms = 1 << 41  # so that both answers differ
        access = {"client": reviewer, "has_reviews": True} | parts
        files = {}
        if tls == "file":
            certificate(tmp_path, "rest", certificate(tmp_path, "ca"))
            files = {"tls_cert": tmp_path / "rest.crt", "tls_key": tmp_path / "rest.key"}
        leads = Lead(HERE)
        source = CopiedSnapshots(replace(shown(world), leader=leads))
        async with (
            opened(reports=there, has_own_history=True, **access) as leader,
            listening(leader, tls == "none", files) as (url, sha256),
            opened(reports=here, has_own_history=True, source=source, **access) as follower,
        ):
            address = AdminAddress(url, sha256)
            leads.leader = LeadingReplica("a", is_here=False, address=address)
            yield Two(follower, leads, here, there, address, leader)

    return opened_two


@asynccontextmanager
async def listening(admin: Admin, is_loopback: bool, files: dict[str, Path]) -> AsyncIterator[tuple[str, str]]:
    """Serve a REST; yield its URL and the hash of its certificate."""
    port, hashes = free_port(), list[str]()
    listener = Listener("127.0.0.1", port, is_loopback=is_loopback, **files)
    running = asyncio.create_task(server.serve(listener, admin.app, datetime.now(UTC), hashes.append))
    try:
        await until_open(port)
        yield f"{'http' if is_loopback else 'https'}://127.0.0.1:{port}", hashes[0]
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


@pytest.mark.heavy
@pytest.mark.parametrize("tls", ["own", "file", "none"])
async def test_every_question_about_the_history_is_answered_by_the_leading_replica(two: Any, tls: str) -> None:
    async with two(tls) as both:
        http = both.follower.http
        for path in PATHS:
            found = await http.get(f"/api/v1{path}", headers=bearer("admin"))
            own = await both.leader.http.get(f"/api/v1{path}", headers=bearer("admin"))
            assert (found.status_code, found.json().keys()) == (200, own.json().keys())
            assert found.headers["cache-control"] == own.headers["cache-control"]
        assert both.here.filters == []
        assert len(both.there.filters) == 2 * len(PATHS)
        await both.led_by(HERE)
        await http.get("/api/v1/usage", headers=bearer("admin"))
        assert len(both.here.filters) == 1


async def test_the_query_and_the_answer_pass_as_they_are(two: Any) -> None:
    async with two() as both:
        http = both.follower.http
        query = "by=label%3Ateam&label=a%2Fb%3Dc%2Bd&limit=2&until=2026-01-02T00%3A00%3A00%2B01%3A00&since=2025-12-01"
        found = await http.get(f"/api/v1/usage?{query}", headers=bearer("admin"))
        assert found.status_code == 200, found.text
        assert both.there.filters[0].labels == {"a/b": "c+d"}
        assert (found.json()["until"], found.json()["itemsLeftOut"]) == ("2026-01-01T23:00:00.000Z", 1)
        known = {"If-None-Match": found.headers["etag"], **bearer("admin")}
        assert (await http.get(f"/api/v1/usage?{query}", headers=known)).status_code == 304
        wrong = await http.get("/api/v1/usage?by=size", headers=bearer("admin"))
        assert (wrong.status_code, wrong.json()["errors"][0]["field"]) == (422, "by")


async def test_each_caller_has_its_own_rights_at_the_leading_replica(two: Any) -> None:
    async with two() as both:
        await both.follower.world.create_pod(gpu_mem=256)
        await both.follower.fresh()
        for token, expected in (("ann", {"default"}), ("bob", set()), ("admin", None)):
            answer = await both.follower.http.get("/api/v1/usage", headers={names.ADMIN_TOKEN_HEADER: token})
            assert answer.status_code == 200, answer.text
            assert both.there.filters[-1].namespaces == expected
        refused = await both.follower.http.get("/api/v1/usage?namespace=other", headers=bearer("ann"))
        assert (refused.status_code, refused.json()["status"]) == (403, 403)
        asked = len(both.there.filters)
        assert (await both.follower.http.get("/api/v1/usage", headers=bearer("nobody"))).status_code == 401
        assert len(both.there.filters) == asked


async def test_another_server_at_the_address_gets_no_token(two: Any) -> None:
    async with two() as both:
        wrong = AdminAddress(both.address.url, "00" * 32)
        await both.led_by(LeadingReplica("a", is_here=False, address=wrong))
        answer = await both.follower.http.get("/api/v1/usage", headers=bearer("admin"))
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
        assert "another certificate than its Lease says" in answer.json()["detail"]
        assert both.there.filters == []


async def test_nothing_is_sent_before_the_certificate_is_compared() -> None:
    """The other server sees a connection and not one byte of a request."""
    received = list[bytes]()

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, ssl.SSLError):
            received.append(await reader.read(1000))
        writer.close()

    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(serving_certificate.self_signed("host", datetime.now(UTC)))
    listener = await asyncio.start_server(take, "127.0.0.1", 0, ssl=context)
    port = listener.sockets[0].getsockname()[1]
    http = PinnedHttp()
    with pytest.raises(ReplicaUnreachable, match="another certificate"):
        await http.ask("GET", f"https://127.0.0.1:{port}/", {"Authorization": "Bearer secret"}, "00" * 32)
    await http.close()
    listener.close()
    await listener.wait_closed()
    assert b"".join(received) == b""


async def test_without_a_leading_replica_the_answer_is_503_and_says_why(two: Any) -> None:
    closed = AdminAddress(f"http://127.0.0.1:{free_port()}")
    async with two() as both:
        for leader, words in (
            (LeadingReplica("", is_here=False), "no replica of the extender leads now"),
            (LeadingReplica("a", is_here=False), "--admin-advertise-address"),
            (LeadingReplica("a", is_here=False, address=closed), "replica a leads and has the history, and does not"),
        ):
            await both.led_by(leader)
            for path in (*PATHS, "/gpus/GPU-n1-0/series", "/pods/default/p/series"):
                answer = await both.follower.http.get(f"/api/v1{path}", headers=bearer("admin"))
                assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
                assert words in answer.json()["detail"]
            assert (await both.follower.http.get("/api/v1/nodes", headers=bearer("admin"))).status_code == 200
        assert both.here.filters == []


async def test_a_request_is_relayed_once(two: Any) -> None:
    """Two replicas that each take the other for the leading one, as their watches lag, end after one step."""
    async with two() as both:
        relayed = {names.RELAYED_HEADER: "1", **bearer("admin")}
        answer = await both.follower.http.get("/api/v1/usage", headers=relayed)
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
        assert "a leads now" in answer.json()["detail"]
        await both.led_by(HERE)
        assert (await both.follower.http.get("/api/v1/usage", headers=relayed)).status_code == 200


async def test_one_caller_has_a_bounded_number_of_questions(two: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leader_relay, "AT_ONCE", 1)
    monkeypatch.setattr(leader_relay, "OF_CALLER", 2)
    async with two() as both:
        asked = [both.follower.http.get("/api/v1/usage", headers=bearer("admin")) for _ in range(5)]
        statuses = [answer.status_code for answer in await asyncio.gather(*asked)]
        assert sorted(statuses) == [200, 200, 503, 503, 503]


async def test_a_database_for_all_replicas_is_asked_by_each(opened: Opened, world: World) -> None:
    other = LeadingReplica("a", is_here=False)
    source = CopiedSnapshots(replace(shown(world), leader=lambda: other))
    async with opened(reports=Asked(), source=source) as admin:
        await admin.get("/usage")


async def test_what_an_administrator_does_is_in_the_history_that_answers(two: Any) -> None:
    async with two() as both:
        done = await both.follower.http.post("/api/v1/gpus/GPU-n1-0/cordon", headers=bearer("admin"))
        assert done.status_code == 200, done.text
        assert [(action.action, action.user) for action in both.leader.actions] == [("cordon", "admin")]
        refused = await both.follower.http.post("/api/v1/gpus/GPU-n1-0/cordon", headers=bearer("ann"))
        assert refused.status_code == 403
        assert both.follower.actions == []
        closed = AdminAddress(f"http://127.0.0.1:{free_port()}")
        await both.led_by(LeadingReplica("a", is_here=False, address=closed))
        done = await both.follower.http.post("/api/v1/gpus/GPU-n1-0/uncordon", headers=bearer("admin"))
        assert done.status_code == 200, done.text
        assert [action.action for action in both.follower.actions] == ["uncordon"]
