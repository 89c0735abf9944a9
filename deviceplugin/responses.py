"""What to answer to the kubelet: which device IDs to prefer, and what a container gets with its IDs. Pure."""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

from deviceplugin.kubelet.messages import ContainerResponse, Mount
from vgpu.adapters.nvml.records import Gpu
from vgpu.domain.formats import container_paths
from vgpu.domain.identifiers import CardUuid
from vgpu.node.cards import device_ids
from vgpu.node.containers.libraries import LIBRARY_IN_CONTAINER
from vgpu.node.containers.state_files import StateFiles

_CONTROL_NODES: Final = ("nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-modeset")


class DeviceList(StrEnum):
    """How the cards reach the container runtime."""

    ENVVAR = "envvar"  # NVIDIA_VISIBLE_DEVICES, for nvidia-container-runtime
    CDI = "cdi"  # device names of the Container Device Interface
    MOUNTS = "mounts"  # device nodes and the driver's files, for runtimes without CDI


@dataclass(frozen=True, slots=True)
class Injection:
    """How this node hands cards and files to its containers.

    Attributes:
        files: the state directory.
        library: name of the installed limiter.
        mode: how the cards are named to the container runtime.
        cdi_kind: vendor and class of the cards' CDI names.
        dev: where this process sees the node's /dev.
        driver: returns the driver's files, where NVIDIA's toolkit does not bring them.
    """

    files: StateFiles
    library: str
    mode: DeviceList = DeviceList.ENVVAR
    cdi_kind: str = "nvidia.com/gpu"
    dev: Path = Path("/dev")
    driver: Callable[[], tuple[Mount, ...]] = tuple

    def existing(self, nodes: Iterable[str]) -> tuple[str, ...]:
        """Return the paths on the node of the device nodes that exist."""
        return tuple(f"/dev/{node}" for node in nodes if (self.dev / node).exists())

    def control_nodes(self) -> tuple[str, ...]:
        """Return the device nodes that every container with a card needs."""
        return self.existing(_CONTROL_NODES)


def preferred_ids(
    available: Collection[str], must: Collection[str], size: int, gpus: Sequence[CardUuid], held: Collection[str]
) -> list[str]:
    """Choose `size` IDs: first those that the kubelet demands (`must`), then an equal part of each of `gpus`.

    On each card the lowest numbers come first. IDs that a container holds are never chosen, even where the kubelet
    offers them. The list is shorter where the cards have no more; the kubelet then adds any others, and the proof at
    PreStartContainer refuses the container.
    """
    chosen = sorted(must, key=device_ids.order)[:size]
    free = set(available) - set(must) - set(held)
    for gpu in gpus:
        room = size // len(gpus) - device_ids.by_gpu(chosen)[gpu]
        here = (device_id for device_id in free if device_ids.gpu_of(device_id) == gpu)
        chosen += sorted(here, key=device_ids.order)[: max(0, room)]
    if not gpus:
        chosen += sorted(free, key=device_ids.order)
    return chosen[:size]


def container_response(
    ids: Iterable[str], gpus: Iterable[Gpu], allocation: str, injection: Injection
) -> ContainerResponse:
    """Return what a container with these IDs gets: its cards, the allocation's files, the library.

    Existing device nodes are passed beside NVIDIA_VISIBLE_DEVICES, so that they stay open when the kubelet updates the
    container's cgroup.
    """
    wanted = set(device_ids.by_gpu(ids))
    cards = sorted((gpu for gpu in gpus if gpu.card.uuid in wanted), key=lambda gpu: gpu.card.index)
    uuids = [gpu.card.uuid for gpu in cards] or sorted(wanted)
    mounts = _mounts(allocation, injection.files)
    if injection.mode is DeviceList.CDI:
        cdi_devices = tuple(f"{injection.cdi_kind}={uuid}" for uuid in uuids)
        return ContainerResponse({"NVIDIA_VISIBLE_DEVICES": "void"}, mounts, (), cdi_devices)
    nodes = (*injection.existing(f"nvidia{gpu.minor}" for gpu in cards), *injection.control_nodes())
    if injection.mode is DeviceList.MOUNTS:
        return ContainerResponse({"NVIDIA_VISIBLE_DEVICES": "void"}, (*injection.driver(), *mounts), nodes, ())
    return ContainerResponse({"NVIDIA_VISIBLE_DEVICES": ",".join(uuids)}, mounts, nodes, ())


def _mounts(allocation: str, files: StateFiles) -> tuple[Mount, ...]:
    return (
        Mount("/run/vgpu/limits", files.limits(allocation)),
        Mount("/run/vgpu/region", files.region(allocation), read_only=False),
        Mount("/run/vgpu/arbiter", files.arbiter(allocation)),
        Mount("/run/vgpu/notices", files.notices(allocation)),
        Mount("/run/vgpu/space", files.space(allocation)),
        Mount(LIBRARY_IN_CONTAINER, files.library(allocation)),
        *(Mount(path, files.preload(allocation)) for path in container_paths.PRELOADS),
    )
