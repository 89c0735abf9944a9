"""The extender's settings: flags, or environment variables `VGPU_EXTENDER_*`."""

from pathlib import Path
from typing import Final, Literal, Self

from pydantic import Field, field_validator, model_validator

from vgpu.adapters import listening
from vgpu.adapters.settings import Address, Listening, of_program
from vgpu.domain import loopback, names, object_names
from vgpu.domain.asks import aliases
from vgpu.domain.asks.policy import PackingPolicy
from vgpu.domain.identifiers import Namespace
from vgpu.placement.policies import DefaultPolicies

Policy = Literal[  # for an enum the command line would take the member's name
    "fragmentation", "binpack", "spread", "fgd", "topology", "power"
]

_WILDCARDS: Final = frozenset({"0.0.0.0", "::", ""})  # noqa: S104 - compared with, not listened on


class ExtenderSettings(Listening):
    """Scheduler extender of vgpushare: answers kube-scheduler's filter, prioritize and bind."""

    model_config = of_program("python -m extender", "VGPU_EXTENDER_")

    kubeconfig: Path | None = Field(None, description="credentials for the API server (default: the pod's own)")
    listen: Address = Field(
        "127.0.0.1:9870", description="IP:PORT of the verbs; an address other than loopback needs mutual TLS"
    )
    tls_cert: Path | None = Field(None, description="serving certificate, PEM")
    tls_key: Path | None = Field(None, description="private key of the serving certificate, PEM")
    client_ca: Path | None = Field(None, description="CA that must have signed the clients' certificates, PEM")
    client_names: str = Field(
        "", description="common names, DNS names or URIs of certificates that may call the verbs, separated by commas"
    )
    slice_mib: int = Field(256, ge=1, le=65536, description="MiB in a memory slice, one setting for the cluster")
    node_policy: Policy = Field("fragmentation", description="which node is preferred, for pods without a policy")
    gpu_policy: Policy = Field("fragmentation", description="which card is preferred, for pods without a policy")
    packing_weights: Path | None = Field(
        None, description="weights of the packing policies, TOML (default: those of the guide)"
    )
    gang_deadline_s: int = Field(
        30,
        ge=5,
        le=3600,
        description="seconds that cards are reserved for a gang whose pods do not come, and that some pods of a gang "
        "are bound while others are missing",
    )
    gang_hold_after_s: int = Field(
        300,
        ge=0,
        le=86400,
        description="seconds that a complete gang waits for cards before room is kept free for it; 0: never",
    )
    gang_hold_s: int = Field(
        600, ge=10, le=86400, description="seconds that room is kept free for a gang, after which other pods get it"
    )
    namespace: Namespace = Field(names.NAMESPACE, description="namespace of the Leases")
    identity: str = Field(
        "", description="this replica's name in the Lease (default: the host's name); each process adds a random part"
    )
    scheduler_lease: str = Field(
        "",
        description="Lease of the kube-schedulers, NAME in the namespace of the Leases or NAMESPACE/NAME: with several "
        "replicas, only the extender beside the leading kube-scheduler binds (default: no other replica)",
    )
    uninvited: Literal["report", "evict"] = Field(
        "report",
        description="whether device plugins may have pods evicted that use a card without a share of it, or without "
        "the limits of their share, or with a kernel that does not end: report or evict; pods of kube-system and of "
        "the Leases' namespace are never evicted for that",
    )
    idle: Literal["report", "act"] = Field(
        "act",
        description="what may be done about pods that use none of their cards: report, or act as the annotations "
        f"{names.IDLE_AFTER} and {names.IDLE_ACTION} say",
    )
    idle_grace: float = Field(
        300, ge=1, le=86400, description="seconds from the warning of an idle pod to the action, at least"
    )
    admin_listen: Address | Literal["off"] = Field(
        f"127.0.0.1:{names.ADMIN_PORT}",
        description="IP:PORT of the admin REST, or off; another address than loopback serves TLS, and needs admin-auth",
    )
    admin_advertise_address: str = Field(
        "",
        description="IP address or host name by which the other replicas reach this one's admin REST, to which they "
        "relay questions about the history (default: that of admin-listen, where it is no wildcard)",
    )
    admin_auth: Literal["local", "token", "kubernetes"] = Field(
        "local",
        description="who may call the admin REST: local (everybody on loopback), token (holders of the token in "
        "admin-token-file), kubernetes (users of the cluster, each with the rights that RBAC gives)",
    )
    admin_token_file: Path | None = Field(None, description="file with the token of admin-auth token")
    admin_tls_cert: Path | None = Field(
        None,
        description="certificate of the admin REST, PEM (default: made at start, for the API server's proxy)",
    )
    admin_tls_key: Path | None = Field(None, description="private key of the admin REST's certificate, PEM")
    gpushare_unit: Literal["GiB", "MiB"] = Field(
        "GiB", description="unit of aliyun.com/gpu-mem in simulated pods, as the webhook's setting"
    )
    history_dir: Path | None = Field(
        None, description="folder of the history: spill, and SQLite database (default: no history)"
    )
    history_url: str = Field(
        "", description="database of the history: postgresql://USER@HOST/NAME (default: history.db in history-dir)"
    )
    history_spill_mib: int = Field(
        256, ge=16, le=65536, description="MiB of events that may wait on disk while the database does not answer"
    )
    history_events_days: int = Field(90, ge=1, le=36500, description="days that events are kept")
    history_hours_days: int = Field(1100, ge=1, le=36500, description="days that usage by the hour is kept")
    history_series_hours: int = Field(48, ge=1, le=1000, description="hours that five-minute figures are kept")
    history_max_mib: int = Field(
        4096, ge=64, description="MiB of the database, above which the oldest days of events are deleted"
    )
    prices: Path | None = Field(None, description="prices of cards by model, TOML (default: usage has no cost)")
    metrics_listen: Address | None = Field(
        None, description="IP:PORT of the metrics, at /metrics and without a token (default: no metrics)"
    )
    log_level: str = Field("info", description="debug, info, warning or error")

    @property
    def defaults(self) -> DefaultPolicies:
        """The cluster's default policies."""
        return DefaultPolicies(PackingPolicy(self.node_policy), PackingPolicy(self.gpu_policy))

    @property
    def drain_environment(self) -> dict[str, str]:
        """The settings of the history's drain, as its environment: a URL may contain a password."""
        return {
            "VGPU_HISTORY_DIR": str(self.history_dir),
            "VGPU_HISTORY_URL": self.history_url,
            "VGPU_HISTORY_EVENTS_DAYS": str(self.history_events_days),
            "VGPU_HISTORY_HOURS_DAYS": str(self.history_hours_days),
            "VGPU_HISTORY_SERIES_HOURS": str(self.history_series_hours),
            "VGPU_HISTORY_MAX_MIB": str(self.history_max_mib),
            "VGPU_HISTORY_LOG_LEVEL": self.log_level,
        }

    @property
    def scheduler_lease_at(self) -> tuple[Namespace, str]:
        """Namespace and name of the kube-schedulers' Lease; the name is empty where none is followed."""
        namespace, _, name = self.scheduler_lease.rpartition("/")
        return Namespace(namespace) if namespace else self.namespace, name

    @property
    def allowed_clients(self) -> tuple[str, ...]:
        """The names of clients that may call the verbs under mutual TLS."""
        return tuple(name for listed in self.client_names.split(",") if (name := listed.strip()))

    @property
    def gpushare_unit_mib(self) -> int:
        """MiB of one `aliyun.com/gpu-mem`."""
        return aliases.GIB_IN_MIB if self.gpushare_unit == "GiB" else 1

    @property
    def admin_address(self) -> tuple[str, int] | None:
        """The address of the admin REST; None where it is off."""
        if self.admin_listen == "off":
            return None
        at = listening.parse(self.admin_listen)
        return at.host, at.port

    @property
    def admin_url(self) -> str:
        """The URL of the admin REST for other replicas; empty where it is off, or no address of it is known."""
        if self.admin_address is None:
            return ""
        listened, port = self.admin_address
        host = self.admin_advertise_address or ("" if listened in _WILDCARDS else listened)
        scheme = "https" if self.admin_tls_cert or not loopback.is_loopback(listened) else "http"
        return f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}" if host else ""

    @property
    def has_own_history(self) -> bool:
        """Whether this replica has a history that no other replica reads or writes."""
        return self.history_dir is not None and not self.history_url

    @field_validator("scheduler_lease")
    @classmethod
    def _names_a_lease(cls, text: str) -> str:
        namespace, slash, name = text.rpartition("/")
        is_placed = object_names.is_label(namespace) or not slash
        if text and not (is_placed and object_names.is_subdomain(name)):
            raise ValueError(
                f'"{text}" must be NAME or NAMESPACE/NAME of a Lease, such as vgpu-scheduler or '
                "kube-system/kube-scheduler"
            )
        return text

    @model_validator(mode="after")
    def _admin_is_guarded(self) -> Self:
        if self.admin_address and self.admin_auth == "local" and not loopback.is_loopback(self.admin_address[0]):
            raise ValueError(f"admin-listen: {self.admin_listen} is not loopback; give admin-auth kubernetes or token")
        if (self.admin_auth == "token") != (self.admin_token_file is not None):
            raise ValueError("admin-token-file: give a file with admin-auth token, and only then")
        if (self.admin_tls_cert is None) != (self.admin_tls_key is None):
            raise ValueError("give both of admin-tls-cert and admin-tls-key, or none")
        return self

    @model_validator(mode="after")
    def _is_guarded(self) -> Self:
        tls = (self.tls_cert, self.tls_key, self.client_ca)
        if any(tls) and not all(tls):
            raise ValueError("give all of tls-cert, tls-key and client-ca, or none")
        if any(tls) and not self.allowed_clients:
            raise ValueError("client-names: name the certificates that may call, such as system:kube-scheduler")
        if not any(tls) and not loopback.is_loopback(self.host):
            raise ValueError(f"listen: {self.host} is not loopback; give tls-cert, tls-key and client-ca")
        return self
