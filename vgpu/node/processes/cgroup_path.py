"""Which container a process belongs to, by the text of its `/proc/<pid>/cgroup`. Pure.

The kubelet makes a cgroup for each pod, and the container runtime one in it for each container:

    /kubepods/burstable/pod<uid>/<id>                                       cgroupfs
    /kubepods.slice/kubepods-pod<uid_>.slice/cri-containerd-<id>.scope      systemd, containerd
    /kubepods.slice/kubepods-pod<uid_>.slice/crio-<id>.scope/container      systemd, CRI-O
    /system.slice/containerd.service/kubepods-pod<uid_>.slice:cri-containerd:<id>

cgroup v1 has a line for each hierarchy, v2 a single line. A container may make cgroups of any name below its own, so
the outermost pod counts.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from vgpu.domain.identifiers import KubeletPodUid

_MAX_LINES: Final = 64
_DELETED: Final = " (deleted)"  # the kernel appends it to the path of a removed cgroup
_PARENTS: Final = frozenset(
    {"kubepods", "burstable", "besteffort", ".."}
)  # `..`: outside of the reader's cgroup namespace
_POD: Final = re.compile(r"pod([0-9A-Za-z.-]{1,64})")
_POD_SLICE: Final = re.compile(
    r"(?:[0-9A-Za-z_.-]{1,200}-)?kubepods(?:-burstable|-besteffort)?-pod([0-9A-Za-z_]{1,64})\.slice(?::[a-z-]{1,32}:([0-9a-f]{64}))?"
)
_CONTAINER: Final = re.compile(r"(?:[a-z][a-z-]{0,31}-)?([0-9a-f]{64})(?:\.scope)?")


@dataclass(frozen=True, slots=True, order=True)
class CgroupOwner:
    """A pod, and a container of it; `container` is the runtime's ID, empty for a process outside of the containers.

    `pod` is the UID by which the kubelet knows the pod. It differs from the API's for static pods only.
    """

    pod: KubeletPodUid
    container: str


def owners_of(cgroups: str) -> frozenset[CgroupOwner]:
    """Return the owner of a process: none outside of all pods, several where hierarchies disagree."""
    lines = cgroups.split("\n")[:_MAX_LINES]  # a cgroup's name may contain any other separator of lines
    return frozenset(found for line in lines if (found := _owner(line)) is not None)


def _owner(line: str) -> CgroupOwner | None:
    """Read a line `<id>:<controllers>:<path>`."""
    path = line.split(":", 2)[-1].removesuffix(_DELETED)
    return next(_owners(path.split("/")), None)


def _owners(names: list[str]) -> Iterator[CgroupOwner]:
    """Yield the pods that a path goes through, outermost first."""
    for parent, name, child in zip(["", *names], names, [*names[1:], ""], strict=False):
        in_slice = _POD_SLICE.fullmatch(name)
        in_folder = _POD.fullmatch(name) if parent in _PARENTS else None
        if in_slice is not None:
            yield CgroupOwner(KubeletPodUid(in_slice[1].replace("_", "-")), in_slice[2] or _container(child))
        elif in_folder is not None:
            yield CgroupOwner(KubeletPodUid(in_folder[1]), _container(child))


def _container(name: str) -> str:
    found = _CONTAINER.fullmatch(name)
    return found[1] if found else ""
