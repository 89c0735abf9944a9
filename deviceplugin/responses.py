"""What to answer to the kubelet: which IDs to prefer, and what a container is given with its IDs. Pure."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

from vgpu.adapters.nvml import Gpu
from vgpu.node import device_ids
from vgpu.node.state_files import LIBRARY_IN_CONTAINER, StateFiles

_CONTROL_NODES: Final = ("nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-modeset")


class DeviceList(StrEnum):
    """How the cards reach the container runtime."""

    ENVVAR = "envvar"  # NVIDIA_VISIBLE_DEVICES, for nvidia-container-runtime
    CDI = "cdi"  # device names of the Container Device Interface


@dataclass(frozen=True, slots=True)
class Mount:
    """A host path to show in the container."""

    container_path: str
    host_path: Path
    read_only: bool = True


@dataclass(frozen=True, slots=True)
class ContainerResponse:
    """Everything that Allocate answers for one container."""

    envs: dict[str, str]
    mounts: tuple[Mount, ...]
    nodes: tuple[str, ...]
    cdi: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Injection:
    """What every container of this node is given by.

    Attributes:
        files: the state directory's.
        library: the installed limiter.
        mode: how the cards are named to the container runtime.
        cdi_kind: vendor and class of the cards' CDI names.
        dev: where device nodes are.
    """

    files: StateFiles
    library: str
    mode: DeviceList = DeviceList.ENVVAR
    cdi_kind: str = "nvidia.com/gpu"
    dev: Path = Path("/dev")


def prefer(
    available: Collection[str], must: Collection[str], size: int, gpus: Sequence[str], held: Collection[str]
) -> list[str]:
    """Choose `size` IDs: what the kubelet insists on, then an equal part of each of `gpus`, lowest numbers first.

    IDs that somebody is listed to hold are never chosen, even where the kubelet offers them. Fewer come back where the
    cards have no more; the kubelet then fills up as it likes, and the proof refuses.
    """
    chosen = sorted(must, key=device_ids.order)[:size]
    free = set(available) - set(must) - set(held)
    for gpu in gpus:
        room = size // len(gpus) - device_ids.by_gpu(chosen)[gpu]
        here = (each for each in free if device_ids.gpu_of(each) == gpu)
        chosen += sorted(here, key=device_ids.order)[: max(0, room)]
    if not gpus:
        chosen += sorted(free, key=device_ids.order)
    return chosen[:size]


def plan(ids: Iterable[str], gpus: Iterable[Gpu], allocation: str, injection: Injection) -> ContainerResponse:
    """Say what a container with these IDs gets: its cards, its files, the library.

    Device nodes that exist are handed over beside NVIDIA_VISIBLE_DEVICES, so that the kubelet's own updates of the
    container's cgroup keep them open.
    """
    files, library = injection.files, injection.library
    wanted = set(device_ids.by_gpu(ids))
    cards = sorted((gpu for gpu in gpus if gpu.card.uuid in wanted), key=lambda gpu: gpu.card.index)
    uuids = [gpu.card.uuid for gpu in cards] or sorted(wanted)
    mounts = (
        Mount("/run/vgpu/limits", files.limits(allocation)),
        Mount("/run/vgpu/region", files.region(allocation), read_only=False),
        Mount("/run/vgpu/arbiter", files.arbiter(allocation)),
        Mount(LIBRARY_IN_CONTAINER, files.library(library)),
        Mount("/etc/ld.so.preload", files.preload(library)),
    )
    if injection.mode is DeviceList.CDI:
        return ContainerResponse(
            {"NVIDIA_VISIBLE_DEVICES": "void"}, mounts, (), tuple(f"{injection.cdi_kind}={uuid}" for uuid in uuids)
        )
    nodes = [*(f"nvidia{gpu.minor}" for gpu in cards), *_CONTROL_NODES]
    existing = tuple(str(injection.dev / node) for node in nodes if (injection.dev / node).exists())
    return ContainerResponse({"NVIDIA_VISIBLE_DEVICES": ",".join(uuids)}, mounts, existing, ())
