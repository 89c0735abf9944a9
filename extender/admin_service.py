"""Builds the admin's process from the extender's settings and parts."""

import asyncio
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import vgpu
from extender.admin.exchange import part_alarms
from extender.admin.exchange.child import AdminChild
from extender.admin.exchange.cluster_server import ClusterServer
from extender.admin.exchange.messages import Listener, StartMessage
from extender.admin.exchange.part_alarms import PartHealth, WatchAge
from extender.admin.exchange.process import AdminProcess
from extender.admin.exchange.snapshot_changes import SnapshotInputs
from extender.admin.exchange.snapshots import Snapshots
from extender.admin.security import audit as admin_audit
from extender.assembly import Observers
from extender.history.recording.events import AdminAction
from extender.history.recording.recorder import HistoryRecorder
from extender.lead import admin_address, leadership, scheduler_lease
from extender.lead.admin_address import AdminAddress, LeadingReplica
from extender.lead.leader import Leader
from extender.settings import ExtenderSettings
from extender.verbs.filter import Filter
from vgpu.domain import loopback
from vgpu.domain.errors import UnusableSetting

MIN_TOKEN = 16  # characters


def admin_process(
    seen: Observers,
    leader: Leader,
    recorder: HistoryRecorder,
    new_id: Callable[[], str],
    user_agent: str,
    identity: str,
    started: AdminChild | None = None,
) -> AdminProcess | None:
    """Return what runs the admin's process; None where it is off.

    `recorder` takes admin actions, and `new_id` makes an ID for each. `identity` is this replica's in the Lease.
    `started` is the process where it runs already.

    Raises:
        UnusableSetting: a file of the settings cannot be used.
    """
    settings = seen.settings
    if settings.admin_address is None:
        return None
    shown = SnapshotInputs(
        cluster=seen.cluster,
        node_filter=Filter(seen.cluster, settings.defaults, cached_requests=1),
        gangs=seen.gangs,
        decisions=seen.decisions.known,
        ready=seen.watches.wait,
        why_not_bound=lambda: why_no_pod_is_bound(seen, leader),
        policies=lambda: seen.cluster.demand.policies(settings.defaults),
        health=lambda: _health(seen, identity),
        leader=lambda: _leader(seen, identity),
    )
    return AdminProcess(
        _start(settings, settings.admin_address, user_agent),
        settings.log_level,
        lambda: ClusterServer(
            Snapshots(shown),
            seen.clocks.monotonic,
            lambda made: recorder.record(_as_event(made, new_id())),
            serving=lambda certificate: _publish(seen, identity, certificate),
        ),
        started,
    )


def why_no_pod_is_bound(seen: Observers, leader: Leader) -> str:
    """Return why no replica binds pods now; empty where this one does, or another one holds the Lease.

    Both replicas answer questions about the cluster: that the one asked does not bind says nothing about the cluster.
    """
    refusal = leader.refusal()
    is_led_by_another = refusal.startswith(leadership.NOT_LEADER) and seen.cluster.leases.is_fresh(leadership.LEASE)
    return "" if is_led_by_another else refusal


def _leader(seen: Observers, identity: str) -> LeadingReplica:
    return admin_address.leading(seen.cluster.leases.get(leadership.LEASE), identity)


def _publish(seen: Observers, identity: str, certificate_sha256: str) -> None:
    """Have the Lease say where this replica's admin REST is, from the next renewal on."""
    if url := seen.settings.admin_url:
        seen.lease_annotations = admin_address.annotations(identity, AdminAddress(url, certificate_sha256))


def _health(seen: Observers, identity: str) -> PartHealth:
    """Return what is wrong with the extender; it is called in the event loop, whose time the watches note."""
    now = asyncio.get_running_loop().time()
    watches = [
        WatchAge(name, None if watch.heard_at is None else now - watch.heard_at, watch.unreadable)
        for name, watch in seen.watches.by_name.items()
    ]
    is_led = seen.cluster.leases.is_fresh(leadership.LEASE)
    leader, settings = _leader(seen, identity), seen.settings
    is_led_by_another = is_led and not leader.is_here
    has_no_way = not leader.address and not settings.admin_url  # a leader that has just started has none yet
    return part_alarms.health(
        watches,
        seen.history_lag(),
        is_led=is_led,
        why_not_led=scheduler_lease.unknown_leader(seen.scheduler_leases, *seen.settings.scheduler_lease_at),
        now_ms=seen.clocks.now_ms(),
        is_history_out_of_reach=settings.has_own_history and is_led_by_another and has_no_way,
    )


def _start(settings: ExtenderSettings, address: tuple[str, int], user_agent: str) -> StartMessage:
    host, port = address
    return StartMessage(
        listener=Listener(host, port, loopback.is_loopback(host), settings.admin_tls_cert, settings.admin_tls_key),
        token=_token(settings.admin_token_file),
        has_reviews=settings.admin_auth == "kubernetes",
        kubeconfig=settings.kubeconfig,
        user_agent=user_agent,
        history_dir=settings.history_dir,
        history_url=settings.history_url,
        prices=settings.prices,
        gpushare_unit_mib=settings.gpushare_unit_mib,
        namespace=settings.namespace,
        version=vgpu.__version__,
        has_own_history=settings.has_own_history,
    )


def _as_event(made: admin_audit.AuditedAction, id_: str) -> AdminAction:
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
