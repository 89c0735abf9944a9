"""The container of a process, from the cgroup paths of kubelets and container runtimes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vgpu.domain.identifiers import KubeletPodUid
from vgpu.node.processes.cgroup_path import CgroupOwner, owners_of

UID = "0a1b2c3d-1111-4222-8333-944444444444"
SLICE = UID.replace("-", "_")
BURSTABLE = f"kubepods-burstable-pod{SLICE}.slice"
BEST_EFFORT = f"kubepods-besteffort-pod{SLICE}.slice"
ID = "0123456789abcdef" * 4
OTHER = "fedcba9876543210" * 4
STATIC = "8f1e2d3c4b5a69788796a5b4c3d2e1f0"  # the kubelet's hash of a static pod's manifest

PATHS = {
    "cgroupfs, guaranteed": f"/kubepods/pod{UID}/{ID}",
    "cgroupfs, burstable": f"/kubepods/burstable/pod{UID}/{ID}",
    "cgroupfs, below a root of its own": f"/node-1/kubepods/besteffort/pod{UID}/{ID}",
    "cgroupfs, CRI-O": f"/kubepods/besteffort/pod{UID}/crio-{ID}",
    "systemd, containerd": f"/kubepods.slice/kubepods-burstable.slice/{BURSTABLE}/cri-containerd-{ID}.scope",
    "systemd, guaranteed": f"/kubepods.slice/kubepods-pod{SLICE}.slice/cri-containerd-{ID}.scope",
    "systemd, CRI-O with crun": f"/kubepods.slice/kubepods-pod{SLICE}.slice/crio-{ID}.scope/container",
    "systemd, Docker": f"/kubepods.slice/kubepods-besteffort.slice/{BEST_EFFORT}/docker-{ID}.scope",
    "kind": f"/docker/{OTHER}/kubelet.slice/kubelet-{BURSTABLE}/cri-containerd-{ID}.scope",
    "containerd without SystemdCgroup": f"/system.slice/containerd.service/{BURSTABLE}:cri-containerd:{ID}",
    "seen from another container": f"/../../{BURSTABLE}/cri-containerd-{ID}.scope",
    "cgroupfs, seen from another container": f"/../../pod{UID}/{ID}",
    "a cgroup of the container's own": f"/kubepods/burstable/pod{UID}/{ID}/init.scope",
    "removed meanwhile": f"/kubepods/burstable/pod{UID}/{ID} (deleted)",
}
HOST = ["/", "", "/init.scope", "/system.slice/nvidia-persistenced.service", "/user.slice/user-0.slice", "/podman/x"]
HOST += [f"/system.slice/docker-{ID}.scope", f"/machine.slice/libpod-{ID}.scope", "/kubepods.slice/podium.service"]


def v2(path: str) -> str:
    return f"0::{path}\n"


def v1(path: str, systemd: str = "") -> str:
    controllers = ["name=systemd", "pids", "cpu,cpuacct", "memory", "devices"]
    lines = [f"{n}:{controller}:{path}" for n, controller in enumerate(controllers, 1)]
    return "\n".join([*lines, f"0::{systemd or path}", ""])


@pytest.mark.parametrize("how", PATHS)
@pytest.mark.parametrize("version", [v1, v2])
def test_the_paths_of_kubelets_and_runtimes(how: str, version: type) -> None:
    assert owners_of(version(PATHS[how])) == {CgroupOwner(KubeletPodUid(UID), ID)}


@pytest.mark.parametrize("path", HOST)
def test_a_path_outside_of_all_pods(path: str) -> None:
    assert owners_of(v2(path)) == frozenset()


def test_a_static_pod_is_known_by_the_hash_of_its_manifest() -> None:
    assert owners_of(v2(f"/kubepods/pod{STATIC}/{ID}")) == {CgroupOwner(KubeletPodUid(STATIC), ID)}


def test_a_process_of_a_pod_outside_of_its_containers() -> None:
    assert owners_of(v2(f"/kubepods/burstable/pod{UID}")) == {CgroupOwner(KubeletPodUid(UID), "")}


def test_a_hierarchy_that_the_kubelet_does_not_use_does_not_count() -> None:
    assert owners_of(v1(f"/kubepods/pod{UID}/{ID}", systemd="/system.slice/containerd.service")) == {
        CgroupOwner(KubeletPodUid(UID), ID)
    }


def test_hierarchies_that_disagree_name_each_owner() -> None:
    other = UID.replace("0a", "ff")
    owners = owners_of(f"1:cpu:/kubepods/pod{UID}/{ID}\n2:memory:/kubepods/pod{other}/{ID}\n")
    assert owners == {CgroupOwner(KubeletPodUid(UID), ID), CgroupOwner(KubeletPodUid(other), ID)}


NAMES = st.sampled_from(
    ["kubepods", "kubepods.slice", "burstable", f"pod{OTHER[:32]}", f"kubepods-pod{SLICE[::-1]}.slice", OTHER, ".."]
) | st.text(st.characters(exclude_characters="/\n"), max_size=12)


@given(st.sampled_from(sorted(PATHS)), st.lists(NAMES, max_size=6))
def test_cgroups_that_a_container_makes_below_its_own_change_nothing(how: str, below: list[str]) -> None:
    path = PATHS[how].removesuffix(" (deleted)")
    below = [*below, f"\x0b2:cpu:/kubepods/pod{OTHER[:32]}/{OTHER}"]  # not a line of its own
    assert owners_of(v2("/".join([path, *below]))) == {CgroupOwner(KubeletPodUid(UID), ID)}


@given(st.text() | st.lists(NAMES).map("/".join).map(v2))
def test_any_text_is_read_without_an_error_and_names_stay_short(text: str) -> None:
    for owner in owners_of(text):
        assert len(owner.pod) <= 64
        assert owner.pod.isascii()
        assert len(owner.container) in (0, 64)
