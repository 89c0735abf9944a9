"""The file system of a path."""

from pathlib import Path

from vgpu.adapters import file_systems

TABLE = """\
22 1 8:1 / / rw - ext4 /dev/sda1 rw
30 22 0:5 / /data rw shared:1 - nfs4 server:/data rw
31 30 0:6 / /data/with\\040space rw - fuse.s3fs s3fs rw
32 22 0:7 / /data rw - lustre mgs:/fs rw
a line of something else
"""


def test_the_mount_that_is_nearest_counts_and_the_last_one_of_a_place(tmp_path: Path) -> None:
    table = tmp_path / "mountinfo"
    table.write_text(TABLE)
    found = [file_systems.type_at(Path(path), table) for path in ("/", "/database", "/data/a", "/data/with space/b")]
    assert found == ["ext4", "ext4", "lustre", "fuse.s3fs"]


def test_a_real_path_and_a_table_that_is_not_there(tmp_path: Path) -> None:
    assert file_systems.type_at(Path("/proc/self")) == "proc"
    assert file_systems.type_at(Path("/"), tmp_path / "none") is None
