"""What a container gets of the driver."""

from pathlib import Path

import pytest

from deviceplugin.driver import files
from deviceplugin.driver.files import DriverFiles, DriverLibrary

VERSION = "580.95.05"


@pytest.mark.parametrize(
    "stem",
    [
        "libcuda",
        "libcudadebugger",
        "libnvcuvid",
        "libnvidia-cfg",
        "libnvidia-encode",
        "libnvidia-gpucomp",
        "libnvidia-ml",
        "libnvidia-nvvm",
        "libnvidia-opencl",
        "libnvidia-opticalflow",
        "libnvidia-pkcs11-openssl3",
        "libnvidia-ptxjitcompiler",
    ],
)
def test_libraries_for_computing_monitoring_and_video_are_wanted(stem: str) -> None:
    assert files.is_wanted(f"{stem}.so.{VERSION}")


@pytest.mark.parametrize(
    "stem",
    [
        "libEGL_nvidia",
        "libGLX_nvidia",
        "libGLESv2_nvidia",
        "libnvidia-eglcore",
        "libnvidia-egl-gbm",
        "libnvidia-fbc",
        "libnvidia-glcore",
        "libnvidia-glsi",
        "libnvidia-glvkspirv",
        "libnvidia-gtk3",
        "libnvidia-ngx",
        "libnvidia-rtcore",
        "libnvidia-tls",
        "libnvidia-container",
        "libnvidia-vksc-core",
        "libnvoptix",
        "libvdpau_nvidia",
        "libc",
    ],
)
def test_libraries_that_draw_are_left_out(stem: str) -> None:
    assert not files.is_wanted(f"{stem}.so.{VERSION}")


def test_a_file_with_the_version_in_its_name_comes_before_one_without() -> None:
    plain = DriverLibrary(Path("/a/libcuda.so.1"), "libcuda.so.1")
    versioned = DriverLibrary(Path(f"/b/libcuda.so.{VERSION}"), "libcuda.so.1")
    later = DriverLibrary(Path(f"/c/libcuda.so.{VERSION}"), "libcuda.so.1")
    assert files.chosen([plain, versioned, later], VERSION) == {"libcuda.so.1": versioned.path}


def test_every_library_is_in_both_layouts_and_all_is_read_only() -> None:
    driver = DriverFiles(
        VERSION,
        62,
        {"libcuda.so.1": Path("/d/libcuda.so.580"), "libnvidia-ml.so.1": Path("/d/libnvidia-ml.so.580")},
        {"nvidia-smi": Path("/opt/bin/nvidia-smi")},
        {"/run/nvidia-persistenced/socket": Path("/run/nvidia-persistenced/socket")},
    )
    mounts = files.mounts(driver)
    assert {mount.container_path: str(mount.host_path) for mount in mounts} == {
        "/usr/lib/x86_64-linux-gnu/libcuda.so": "/d/libcuda.so.580",
        "/usr/lib/x86_64-linux-gnu/libcuda.so.1": "/d/libcuda.so.580",
        "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1": "/d/libnvidia-ml.so.580",
        "/usr/lib64/libcuda.so": "/d/libcuda.so.580",
        "/usr/lib64/libcuda.so.1": "/d/libcuda.so.580",
        "/usr/lib64/libnvidia-ml.so.1": "/d/libnvidia-ml.so.580",
        "/usr/bin/nvidia-smi": "/opt/bin/nvidia-smi",
        "/run/nvidia-persistenced/socket": "/run/nvidia-persistenced/socket",
    }
    assert len(mounts) == 8
    assert all(mount.read_only for mount in mounts)


def test_containers_of_arm_machines_have_their_own_folder() -> None:
    mounts = files.mounts(DriverFiles(VERSION, 183, {"libcuda.so.1": Path("/d/libcuda.so.580")}))
    assert {str(Path(mount.container_path).parent) for mount in mounts} == {"/usr/lib/aarch64-linux-gnu", "/usr/lib64"}
