"""How the extender stops: it releases its Lease only when no Binding of its own can be carried out any more.

The next leader binds at once after a release. So the Lease is renewed while outcomes are unknown, and the outcomes are
polled. Where they remain unknown the Lease is not released: it expires, and the next leader waits until the last
Binding has expired too.
"""

import asyncio
import logging
from typing import Final

from extender.lead import binding_outcome
from extender.lead.leadership import Leadership
from extender.verbs.bind import Binder

DRAIN_S: Final = binding_outcome.REQUEST_EXPIRY_S + 2 * binding_outcome.RETRY_S  # one failed read is repeated

log = logging.getLogger(__name__)


async def shut_down(binder: Binder, leadership: Leadership, background: asyncio.Task[None]) -> None:
    """Wait for all Bindings, release the Lease, and stop the background tasks (watches and renewals).

    It takes `DRAIN_S` and a Binding's own time-outs at most; call it when no verb is served any more. The Lease is
    released before anything else is waited for: the next leader binds from then on.
    """
    if await binder.drain(DRAIN_S):
        await leadership.resign()
    else:
        log.warning("the Lease is not released, because the outcome of a Binding is unknown: it expires by itself")
    background.cancel()
    await asyncio.wait([background])
