"""Waits until the parts answer, and until the API server trusts the webhook."""

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from typing import Final

import aiohttp

from vgpu.simulator import installation
from vgpu.simulator.api import admission
from vgpu.simulator.api.cluster import InMemoryCluster

POLL_S: Final = 0.05


async def extender(session: aiohttp.ClientSession, url: str) -> None:
    """Return when the extender is ready."""
    await _until(lambda: _answers(session, f"{url}/readyz", trust=True))


async def admin(session: aiohttp.ClientSession, url: str) -> None:
    """Return when the admin REST answers."""
    await _until(lambda: _answers(session, f"{url}/healthz", trust=True))


async def webhook(session: aiohttp.ClientSession, url: str, cluster: InMemoryCluster) -> None:
    """Return when the webhook's configurations contain its CA, and it is ready."""

    async def trusted_and_answering() -> bool:
        bundle = installation.ca_bundle(cluster)
        return bool(bundle) and await _answers(session, f"{url}/readyz", trust=admission.trust(bundle))

    await _until(trusted_and_answering)


async def _until(check: Callable[[], Awaitable[bool]]) -> None:
    while True:
        if await check():
            return
        await asyncio.sleep(POLL_S)


async def _answers(session: aiohttp.ClientSession, url: str, *, trust: ssl.SSLContext | bool) -> bool:
    try:
        async with session.get(url, ssl=trust) as answer:
            return answer.ok
    except (aiohttp.ClientError, TimeoutError):
        return False
