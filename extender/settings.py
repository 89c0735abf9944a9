"""The extender's settings: flags, or environment variables `VGPU_EXTENDER_*`."""

import ipaddress
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, model_validator
from pydantic_settings import SettingsConfigDict

from vgpu import names
from vgpu.adapters.settings import Address, Listening
from vgpu.placement.policies import DefaultPolicies
from vgpu.policy import PackingPolicy

Policy = Literal["binpack", "spread"]  # for an enum the command line would take the member's name


class Settings(Listening):
    """Scheduler extender of vgpushare: answers kube-scheduler's filter, prioritize and bind."""

    model_config = SettingsConfigDict(
        env_prefix="VGPU_EXTENDER_",
        cli_prog_name="python -m extender",
        cli_kebab_case=True,
        cli_hide_none_type=True,
        extra="forbid",
    )

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
    node_policy: Policy = Field("binpack", description="which node is preferred, for pods without a policy")
    gpu_policy: Policy = Field("binpack", description="which card is preferred, for pods without a policy")
    namespace: str = Field(names.NAMESPACE, description="namespace of the Leases")
    identity: str = Field(
        "", description="this replica's name in the Lease (default: the host's name); each process adds a random part"
    )
    scheduler_lease: str = Field(
        "",
        description="Lease of the kube-schedulers: with several replicas, only the extender beside the leading"
        " kube-scheduler binds (default: no other replica)",
    )
    uninvited: Literal["report", "evict"] = Field(
        "report",
        description="whether device plugins may have pods evicted that use a card without a share of it, or without "
        "the limits of their share: report or evict; pods of kube-system and of the Leases' namespace are never "
        "evicted for that",
    )
    metrics_listen: Address | None = Field(
        None, description="IP:PORT of the metrics, at /metrics and without a token (default: no metrics)"
    )
    log_level: str = Field("info", description="debug, info, warning or error")

    @property
    def defaults(self) -> DefaultPolicies:
        """The cluster's default policies."""
        return DefaultPolicies(PackingPolicy(self.node_policy), PackingPolicy(self.gpu_policy))

    @property
    def allowed_clients(self) -> tuple[str, ...]:
        """The names of clients that may call the verbs under mutual TLS."""
        return tuple(name for each in self.client_names.split(",") if (name := each.strip()))

    @model_validator(mode="after")
    def _is_guarded(self) -> Self:
        tls = (self.tls_cert, self.tls_key, self.client_ca)
        if any(tls) and not all(tls):
            raise ValueError("give all of tls-cert, tls-key and client-ca, or none")
        if any(tls) and not self.allowed_clients:
            raise ValueError("client-names: name the certificates that may call, such as system:kube-scheduler")
        if not any(tls) and not ipaddress.ip_address(self.host).is_loopback:
            raise ValueError(f"listen: {self.host} is not loopback; give tls-cert, tls-key and client-ca")
        return self
