"""Which containers run: those whose limits file a process has mounted."""

from pathlib import Path

import pytest

from tests.vgpu.cli.conftest import Make
from vgpu.adapters.procfs import Procfs
from vgpu.cli.local import allocations, running

MOUNT = "90 22 254:0 /var/lib/vgpu/allocations/{}/limits /run/vgpu/limits ro,nosuid - ext4 /dev/vda rw\n"


@pytest.fixture
def three(home: Path, make: Make) -> Path:
    """A command and two containers."""
    make("command", command="train")
    make("runs", pod=("default", "a", "main"))
    make("ended", pod=("default", "b", "main"))
    return home


def names(home: Path, mounts: dict[int, str], *, sees_all: bool) -> set[str]:
    found = running.without_ended(allocations.read_all(home), lambda: mounts, sees_all=sees_all)
    return {allocation.folder.name for allocation in found}


@pytest.mark.parametrize(
    ("mounted", "sees_all", "shown"),
    [
        ("runs", True, {"command", "runs"}),
        ("", True, {"command"}),
        ("runs", False, {"command", "runs"}),  # one is seen, so the others would be
        ("", False, {"command", "runs", "ended"}),
    ],
)
def test_a_container_that_has_ended_is_left_out(three: Path, mounted: str, sees_all: bool, shown: set[str]) -> None:
    assert names(three, {7: MOUNT.format(mounted) if mounted else ""}, sees_all=sees_all) == shown


def test_the_processes_of_this_machine_are_asked(three: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Procfs, "mountinfos", lambda _: {7: MOUNT.format("runs")})
    assert {allocation.folder.name for allocation in running.read([three])} == {"command", "runs"}


def test_without_containers_no_process_is_read(home: Path, make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    make("command", command="train")
    monkeypatch.delattr(Procfs, "mountinfos")
    assert len(running.read([home])) == 1
