"""Builds the admin REST from the extender's settings and parts."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import datetime
from pathlib import Path

from extender.admin import assembly
from extender.admin import audit as admin_audit
from extender.admin.assembly import Parts
from extender.admin.server import AdminServer, Listener
from extender.admin.snapshots import Snapshots
from extender.assembly import Observers
from extender.filter import Filter
from extender.history import folder, prices
from extender.history.events import AdminAction
from extender.history.recorder import Recorder
from extender.history.reports import Reports
from extender.leader import Leader
from extender.settings import Settings, is_loopback
from vgpu.adapters.kubernetes.client import Client
from vgpu.errors import UnusableSetting

MIN_TOKEN = 16  # characters


def admin_server(
    seen: Observers, leader: Leader, recorder: Recorder, new_id: Callable[[], str], user_agent: str
) -> AdminServer | None:
    """Return the admin's listener; None where it is off. Call it on the verbs' event loop.

    `recorder` takes admin actions, and `new_id` makes an ID for each.

    Raises:
        UnusableSetting: a file of the settings cannot be used.
    """
    settings, clocks = seen.settings, seen.clocks
    if settings.admin_address is None:
        return None
    host, port = settings.admin_address
    parts = Parts(
        snapshots=Snapshots(
            seen.cluster,
            Filter(seen.cluster, settings.defaults, cached_requests=1),
            seen.gangs,
            seen.decisions.known,
        ),
        ready=seen.watches.wait,
        connect=_connect(settings, user_agent),
        why_not_leader=leader.refusal,
        policies=lambda: seen.cluster.demand.policies(settings.defaults),
        clock=clocks.monotonic,
        now=clocks.now,
        token=_token(settings.admin_token_file),
        has_reviews=settings.admin_auth == "kubernetes",
        open_reports=lambda: _reports(seen),
        on_action=lambda made: recorder.record(_as_event(made, new_id())),
        gpushare_unit_mib=settings.gpushare_unit_mib,
    )
    listener = Listener(host, port, is_loopback(host), settings.admin_tls_cert, settings.admin_tls_key)
    return AdminServer(listener, assembly.opened(parts, asyncio.get_running_loop()), clocks.now)


def _connect(settings: Settings, user_agent: str) -> Callable[[], AbstractAsyncContextManager[Client]]:
    @asynccontextmanager
    async def connect() -> AsyncIterator[Client]:
        kubeconfig = str(settings.kubeconfig) if settings.kubeconfig else None
        async with await Client.connect(kubeconfig, user_agent=user_agent) as client:
            yield client

    return connect


def _reports(seen: Observers) -> Reports | None:
    """Open the history. SQLAlchemy takes 45 MB and half a second: it is imported in the admin's thread, if at all."""
    settings = seen.settings
    if settings.history_dir is None:
        return None
    from extender.history import database  # noqa: PLC0415
    from extender.history.sql_reports import SqlReports  # noqa: PLC0415

    url = settings.history_url or database.sqlite_url(folder.sqlite_file(settings.history_dir))
    known = prices.read(settings.prices) if settings.prices else prices.Prices()
    return SqlReports(database.engine(url), known, seen.clocks.now_ms)


def _as_event(made: admin_audit.AdminAction, id_: str) -> AdminAction:
    at_ms = int(datetime.fromisoformat(made.at).timestamp() * 1000)
    return AdminAction(id_, at_ms, made.user, made.action, made.node, made.gpu, made.outcome)


def _token(file: Path | None) -> str:
    if file is None:
        return ""
    try:
        token = file.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise UnusableSetting(f"admin-token-file: {file} cannot be read: {error}") from error
    if len(token) < MIN_TOKEN or not token.isascii():
        raise UnusableSetting(f"admin-token-file: {file} must hold {MIN_TOKEN} ASCII characters or more")
    return token
