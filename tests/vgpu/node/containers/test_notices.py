"""The notice in a container that its pod is idle."""

from pathlib import Path

from vgpu.domain import names
from vgpu.domain.identifiers import ContainerName, Namespace, PodUid
from vgpu.node.containers import bound_pod
from vgpu.node.containers.allocations import Allocation, Holder
from vgpu.node.containers.notices import Notices
from vgpu.node.containers.state_files import StateFiles

WARNED = Allocation(
    "a",
    names.SLICE,
    frozenset(),
    "c",
    1,
    0.0,
    "lib",
    Holder(PodUid("uid-a"), Namespace("default"), "nb", ContainerName("main")),
)


def test_the_notice_is_there_as_long_as_the_warning(tmp_path: Path) -> None:
    files, warnings = StateFiles(tmp_path), {"uid-a": "idle"}
    files.prepare("a")
    file = files.notices("a") / "idle"
    Notices(files, lambda: [WARNED], lambda uid: warnings.get(uid, "")).refresh()
    assert file.read_text() == "idle\n"
    assert file.stat().st_mode & 0o777 == 0o644
    other = Notices(files, lambda: [WARNED], lambda uid: warnings.get(uid, ""))  # of a restarted plugin
    other.refresh()
    assert file.exists()
    warnings.clear()
    other.refresh()
    assert not file.exists()


def test_a_container_of_an_older_release_has_no_directory_for_it(tmp_path: Path) -> None:
    files = StateFiles(tmp_path)
    Notices(files, lambda: [WARNED], lambda _: "idle").refresh()
    assert not files.notices("a").exists()


def test_the_warning_is_the_conditions_message() -> None:
    def read(**condition: object) -> str:
        status = {"conditions": [{"type": "Ready", "status": "True"}, condition]}
        return bound_pod._bound(
            {"metadata": {"uid": "u", "namespace": "n", "name": "p"}, "status": status}
        ).idle_warning

    assert read(type=names.IDLE_CONDITION, status="True", message="m" * 5000) == "m" * 1000
    assert read(type=names.IDLE_CONDITION, status="False", message="m") == ""
    assert read(type=names.IDLE_CONDITION, status="True", message=None) == ""
