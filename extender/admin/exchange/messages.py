"""What the admin's process asks of the extender, and what it is answered. Each message is a frame."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from extender.admin.exchange.part_alarms import HEALTHY, PartHealth
from extender.admin.security.audit import AuditedAction
from extender.lead.admin_address import THIS_ONE, LeadingReplica
from extender.state.gang_members import GangKey
from extender.state.objects import WatchedPod
from vgpu.domain.identifiers import Namespace
from vgpu.placement.policies import DefaultPolicies


@dataclass(frozen=True, slots=True)
class Listener:
    """Where to listen. Without files, an address other than loopback gets a certificate of its own (ADR 44)."""

    host: str
    port: int
    is_loopback: bool
    tls_cert: Path | None = None
    tls_key: Path | None = None


@dataclass(frozen=True, slots=True)
class StartMessage:
    """The first message to the process: its settings.

    Attributes:
        listener: where to listen.
        token: the static token; empty for none.
        has_reviews: whether the API server reviews tokens and rights; otherwise loopback or the static token counts.
        kubeconfig: credentials for the API server; None for the pod's own.
        user_agent: for the API server.
        history_dir: folder of the history; None where none is kept.
        history_url: its database; empty for the SQLite file in the folder.
        prices: of cards by model, TOML.
        gpushare_unit_mib: MiB of one `aliyun.com/gpu-mem`.
        namespace: in which vgpushare is installed.
        version: of the extender.
        has_own_history: whether other replicas have histories of their own.
    """

    listener: Listener
    token: str = field(repr=False)
    has_reviews: bool
    kubeconfig: Path | None
    user_agent: str
    history_dir: Path | None
    history_url: str = field(repr=False)
    prices: Path | None
    gpushare_unit_mib: int
    namespace: Namespace
    version: str
    has_own_history: bool = False


@dataclass(frozen=True, slots=True)
class TakeSnapshot:
    """Asks for what has changed since the last snapshot: `Piece`s, then `SnapshotEnd`."""


@dataclass(frozen=True, slots=True)
class AskReserved:
    """Asks on which nodes cards are reserved for other pods than this one."""

    pod: WatchedPod


@dataclass(frozen=True, slots=True)
class AskGangs:
    """Asks why gangs wait."""

    keys: Collection[GangKey]


@dataclass(frozen=True, slots=True)
class AskRequests:
    """Asks what pods ask for beside the pods that are on cards now."""

    pods: Sequence[WatchedPod]


@dataclass(frozen=True, slots=True)
class Acted:
    """Tells of an admin action. It has no answer."""

    action: AuditedAction


@dataclass(frozen=True, slots=True)
class Serving:
    """Tells that the process has its certificate: its SHA-256 in hexadecimal, empty without TLS. It has no answer."""

    certificate_sha256: str


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a snapshot: some changes of one of its mappings.

    Attributes:
        mapping: name of the mapping: `pods`, `gpunodes`, `views` or `decisions`.
        changed: the objects that are new or changed, by their keys.
        gone: the keys of the objects that no longer exist.
    """

    mapping: str
    changed: Mapping[str, Any]
    gone: Collection[str] = ()


@dataclass(frozen=True, slots=True)
class SnapshotEnd:
    """The end of a snapshot, with what is no mapping. `policies` is None where they are those of the last snapshot."""

    number: int
    slice_mib: int
    why_not_bound: str
    policies: DefaultPolicies | None
    health: PartHealth = HEALTHY
    leader: LeadingReplica = THIS_ONE


@dataclass(frozen=True, slots=True)
class Failed:
    """There is no answer, and why."""

    detail: str
