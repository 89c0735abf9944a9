"""What the plugin and the kubelet exchange, in types of our own; `server` and `pod_resources_client` translate."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from vgpu.domain.identifiers import ContainerName
from vgpu.node.containers.bound_pod import PodKey

Holdings = Mapping[ContainerName, Mapping[str, frozenset[str]]]  # one pod's device IDs: container -> resource -> IDs
Listing = Mapping[PodKey, Holdings]  # what pod-resources lists; init containers are never in it


@dataclass(frozen=True, slots=True)
class Device:
    """One device of a list that ListAndWatch sends."""

    id: str
    healthy: bool


@dataclass(frozen=True, slots=True)
class Mount:
    """A host path to mount into the container."""

    container_path: str
    host_path: Path
    read_only: bool = True


@dataclass(frozen=True, slots=True)
class ContainerResponse:
    """What Allocate answers for one container.

    Attributes:
        envs: environment variables.
        mounts: files and directories.
        device_nodes: paths of device nodes, the same on the host and in the container.
        cdi_devices: names of the Container Device Interface.
    """

    envs: dict[str, str]
    mounts: tuple[Mount, ...]
    device_nodes: tuple[str, ...]
    cdi_devices: tuple[str, ...]
