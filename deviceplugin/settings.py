"""The device plugin's settings: flags, or environment variables `VGPU_PLUGIN_*`."""

from importlib import resources
from pathlib import Path
from typing import Final, Literal, Self

from pydantic import AliasChoices, Field, model_validator
from pydantic_settings import BaseSettings

from deviceplugin.driver import cdi
from vgpu.adapters.settings import Address, of_program
from vgpu.domain import names
from vgpu.domain.identifiers import Namespace, NodeName
from vgpu.node.cards.watermarks import Watermark
from vgpu.node.containers.libraries import LIBRARY

SOCKETS: Final = {names.SLICE: "vgpushare/slice.sock", names.CARD: "vgpushare/card.sock"}  # below the folder
_ARBITER = "vgpu-arbiter"


class PluginSettings(BaseSettings):
    """Device plugin of vgpushare: advertises the cards of one node and hands shares of them to containers."""

    model_config = of_program("python -m deviceplugin", "VGPU_PLUGIN_")

    node_name: NodeName = Field(
        validation_alias=AliasChoices("node_name", "node-name", "NODE_NAME", "VGPU_PLUGIN_NODE_NAME"),
        description="name of this Node (also from NODE_NAME)",
    )
    kubeconfig: Path | None = Field(None, description="credentials for the API server (default: the pod's own)")
    namespace: Namespace = Field(names.NAMESPACE, description="namespace of the node's Lease")
    slice_mib: int = Field(256, ge=1, le=65536, description="MiB in a memory slice, one setting for the cluster")
    kubelet_dir: Path = Field(
        Path("/var/lib/kubelet"), description="the kubelet's directory, with device-plugins/ and pod-resources/"
    )
    state_dir: Path = Field(
        Path("/var/lib/vgpu"), description="directory of allocations and libraries; the same path as on the host"
    )
    library: Path | None = Field(None, description=f"the limiter's {LIBRARY} (default: the packaged one)")
    device_list: Literal["envvar", "cdi", "mounts"] = Field(
        "envvar",
        description="how cards reach containers: envvar (NVIDIA's runtime reads NVIDIA_VISIBLE_DEVICES), cdi (names of "
        "the Container Device Interface), or mounts (device nodes and the driver's files from the device plugin, for "
        "runtimes without CDI)",
    )
    cdi_kind: str = Field(
        "nvidia.com/gpu",
        description=f"vendor and class of the cards' CDI names; of {cdi.KIND} the device plugin writes the "
        "specification itself, of others NVIDIA's toolkit does",
    )
    cdi_dir: Path = Field(cdi.FOLDER, description="directory of CDI specifications, as on the host")
    driver_root: Path = Field(
        Path("/"),
        description="where this process sees the node's root: NVML is loaded from there, and the driver's files are "
        f"found there for mounts and for the CDI kind {cdi.KIND}",
    )
    region_tmpfs: bool = Field(
        True,
        description="whether each container's region, 0.9 MiB, is on a tmpfs of its own; where it is not, a container "
        "can fill the disk of the state directory",
    )
    health_period: float = Field(5.0, gt=0, description="seconds between two polls of every card")
    xid_quarantine: float = Field(60.0, ge=0, description="seconds for which a card is unhealthy after an XID error")
    recovery_polls: int = Field(
        3, ge=1, le=100, description="polls without a fault, in succession, after which a card is healthy again"
    )
    turns: bool = Field(True, description="whether the arbiter runs, which gives the containers of a card turns")
    arbiter: Path | None = Field(None, description=f"the program {_ARBITER} (default: the packaged one)")
    watermark_high: int = Field(
        90, description="percent of a card's time: where other containers use more, best-effort containers get less"
    )
    watermark_low: int = Field(
        70,
        description="percent of a card's time: below it best-effort containers get more; GPUNodes may set both by card",
    )
    uninvited: Literal["report", "evict"] = Field(
        "report",
        description="what happens to pods that use a card without a share of it: report, or evict, which asks the "
        "extender to evict those with a controller; the extender has to allow that by its own setting of this name",
    )
    without_limits: Literal["report", "evict"] = Field(
        "report",
        description="what happens to pods whose processes use a share without its limits (no limiter in the process, "
        "another file in place of the limits, more memory than the limit or the region says): report, or evict, as for "
        "uninvited",
    )
    endless_kernels: Literal["report", "evict"] = Field(
        "report",
        description="what happens to pods with a kernel that does not end beside other containers: report, or evict, "
        "which ends its process, as for uninvited",
    )
    memory_tolerance_mib: int = Field(
        256,
        ge=16,
        le=65536,
        description="MiB that NVML may count for a container beyond its limit, or beyond its region, before the "
        "container is reported",
    )
    host_commands: str = Field(
        "nvidia-persistenced,nvidia-smi,nv-hostengine,nv-fabricmanager,nvidia-powerd,nvidia-cuda-mps-control,"
        "nvidia-cuda-mps-server",
        description="names of host processes outside of pods that may use cards, separated by commas; 15 characters "
        "of each are compared",
    )
    usage_period: float = Field(
        60.0,
        ge=5.0,
        le=3600.0,
        description="seconds between reports of GPU time and memory used, for the history; in clusters of more than "
        "600 nodes each node reports less often: a tenth of a second for each node",
    )
    metrics_listen: Address | None = Field(
        None, description="IP:PORT of the metrics, at /metrics and without a token (default: no metrics)"
    )
    dcgm_names: bool = Field(
        False, description="whether the metrics are also served under the names of NVIDIA's dcgm-exporter"
    )
    remove_state: bool = Field(
        False,
        description="whether the state directory is removed, once no container uses it, and no card is served: for "
        "uninstalling (manifests/cleanup/)",
    )
    log_level: str = Field("info", description="debug, info, warning or error")

    @model_validator(mode="after")
    def _check_watermark(self) -> Self:
        Watermark(self.watermark_high, self.watermark_low)  # raises ValueError
        return self

    @property
    def device_plugins_dir(self) -> Path:
        """The kubelet's folder of device plugins' sockets."""
        return self.kubelet_dir / "device-plugins"

    @property
    def relay_dir(self) -> Path:
        """The folder of the sockets between the relaying process and the serving process."""
        return self.state_dir / "relay"

    @property
    def watermark(self) -> Watermark:
        """The watermark of cards for which the GPUNode sets none."""
        return Watermark(self.watermark_high, self.watermark_low)

    @property
    def evicting_reasons(self) -> frozenset[str]:
        """The reasons of reports that ask for an eviction."""
        uninvited = {names.CARD_USED_WITHOUT_SHARE} if self.uninvited == "evict" else set()
        endless = {names.ENDLESS_KERNEL} if self.endless_kernels == "evict" else set()
        return frozenset(
            uninvited | endless | (names.WITHOUT_LIMITS if self.without_limits == "evict" else frozenset())
        )

    @property
    def allowed_commands(self) -> tuple[str, ...]:
        """The names of host processes that may use cards."""
        return tuple(name for command in self.host_commands.split(",") if (name := command.strip()))

    @property
    def writes_cdi(self) -> bool:
        """Whether the device plugin writes the CDI specification."""
        return self.device_list == "cdi" and self.cdi_kind == cdi.KIND

    @property
    def brings_driver(self) -> bool:
        """Whether containers get the driver's files from the device plugin, not from NVIDIA's container toolkit."""
        return self.device_list == "mounts" or self.writes_cdi

    def arbiter_path(self) -> Path:
        """Return the path of the arbiter's program."""
        return self.arbiter or Path(str(resources.files("limiter") / _ARBITER))

    def library_path(self) -> Path:
        """Return the path of the library to mount."""
        return self.library or Path(str(resources.files("limiter") / LIBRARY))
