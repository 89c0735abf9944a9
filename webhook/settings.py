"""The webhook's settings: flags, or environment variables `VGPU_WEBHOOK_*`."""

import ipaddress
from pathlib import Path
from typing import Literal

from pydantic import Field

from vgpu.adapters.settings import Address, Listening, of_program
from vgpu.domain import names
from vgpu.domain.asks import aliases


class WebhookSettings(Listening):
    """Admission webhook of vgpushare: refuses, translates and completes pods that ask for GPUs."""

    model_config = of_program("python -m webhook", "VGPU_WEBHOOK_")

    kubeconfig: Path | None = Field(None, description="credentials for the API server (default: the pod's own)")
    listen: Address = Field("127.0.0.1:9443", description="IP:PORT to serve TLS on")
    namespace: str = Field(names.NAMESPACE, description="namespace of the Service and the Secret")
    service: str = Field("vgpu-webhook", description="the Service that the API server calls")
    configuration: str = Field("vgpu-webhook", description="name of the two webhook configurations, which get the CA")
    secret: str = Field("vgpu-webhook-ca", description="the Secret with the CA that all replicas share")
    dns_names: str = Field("", description="more names and IP addresses for the certificate, separated by commas")
    certificates: Literal["self", "files"] = Field(
        "self",
        description="self: signed by a CA of the webhook's own; files: written by a program such as cert-manager",
    )
    tls_cert: Path = Field(Path("/etc/vgpu/tls/tls.crt"), description="with files: the certificate chain, PEM")
    tls_key: Path = Field(Path("/etc/vgpu/tls/tls.key"), description="with files: the private key, PEM")
    slice_mib: int = Field(256, ge=1, le=65536, description="MiB in a memory slice, one setting for the cluster")
    scheduler_name: str = Field(names.SCHEDULER, description="the scheduler of pods that ask for GPUs")
    gpushare_unit: Literal["GiB", "MiB"] = Field("GiB", description="unit of aliyun.com/gpu-mem")
    metrics_listen: Address | None = Field(
        None, description="IP:PORT of the metrics, at /metrics and without a token (default: no metrics)"
    )
    log_level: str = Field("info", description="debug, info, warning or error")

    @property
    def gpushare_unit_mib(self) -> int:
        """MiB of one `aliyun.com/gpu-mem`."""
        return aliases.GIB_IN_MIB if self.gpushare_unit == "GiB" else 1

    @property
    def serving_names(self) -> tuple[str, ...]:
        """Every name and IP address that the serving certificate must be valid for."""
        service = f"{self.service}.{self.namespace}.svc"
        more = (name.strip() for name in self.dns_names.split(","))
        own = () if ipaddress.ip_address(self.host).is_unspecified else (self.host,)
        return tuple(dict.fromkeys(name for name in (service, f"{service}.cluster.local", *own, *more) if name))
