"""What the admin's event loop asks of the verbs' event loop."""

import asyncio

import pytest

from tests.extender.admin.conftest import Admin


@pytest.fixture
def crossed(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Every call into the verbs' event loop."""
    calls: list[object] = []
    call = asyncio.run_coroutine_threadsafe

    def counted(*args: object) -> object:
        calls.append(args[0])
        return call(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(asyncio, "run_coroutine_threadsafe", counted)
    return calls


async def test_requests_share_a_snapshot_without_a_call_into_the_verbs_loop(
    admin: Admin, crossed: list[object]
) -> None:
    for _ in range(5):
        assert (await admin.http.get("/api/v1/nodes")).is_success
    assert len(crossed) == 1
    await admin.fresh()
    assert (await admin.http.get("/api/v1/nodes")).is_success
    assert len(crossed) == 2
