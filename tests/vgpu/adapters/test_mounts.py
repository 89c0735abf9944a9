"""Whether mounts propagate, read from mountinfo; tests/vgpu/node/containers/test_region_tmpfs.py mounts."""

from pathlib import Path

import pytest

from vgpu.adapters import mounts

MOUNTS = """\
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 22 8:2 / /var/lib/vgpu rw master:5 - ext4 /dev/sdb rw
31 22 8:2 / /var/lib/vgpu2 rw - ext4 /dev/sdb rw
32 22 8:2 / /srv rw,noatime shared:9 master:2 - ext4 /dev/sdb rw
"""


@pytest.mark.parametrize(
    ("path", "shared"),
    [("/var/lib/vgpu/regions", False), ("/var/lib/vgpu2", False), ("/srv/x", True), ("/var/lib", True)],
)
def test_a_mount_is_shared_where_the_mount_below_which_it_lies_is(path: str, shared: bool) -> None:
    assert mounts.is_shared(Path(path), MOUNTS) is shared
