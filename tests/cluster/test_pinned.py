"""Pinned programs are kept by what pins them, and built once."""

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from cluster import missing
from cluster.programs import golang, pinned

GO_MOD = "module x\n\nrequire (\n\tk8s.io/api v0.30.14 // indirect\n\tk8s.io/kubernetes v1.30.14 // indirect\n)\n"


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pinned.Programs:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "go.mod").write_text(GO_MOD)
    return pinned.Programs("Title", "kube", tmp_path, ("k8s.io/a/cmd/one", "k8s.io/a/cmd/two"))


def test_programs_are_built_when_all_of_them_are_there(programs: pinned.Programs) -> None:
    programs.folder.mkdir(parents=True)
    for name in ("one", "two"):
        assert not programs.is_built()
        (programs.folder / name).touch()
    assert programs.ensure() == programs.folder


def test_of_two_that_need_programs_one_builds_them(programs: pinned.Programs, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two workers of a test run begin at once on a fresh machine."""
    built: list[str] = []

    def build(self: pinned.Programs) -> None:
        built.append(self.name)
        time.sleep(0.2)
        self.folder.mkdir(parents=True)
        for name in ("one", "two"):
            (self.folder / name).touch()

    monkeypatch.setattr(pinned.Programs, "_build", build)
    with ThreadPoolExecutor(4) as workers:
        assert set(workers.map(lambda _: programs.ensure(), range(4))) == {programs.folder}
    assert built == ["kube"]


GO = """#!/bin/sh
# Fails `failures` times, then builds what is asked for: go build -trimpath -ldflags FLAGS -o FOLDER PACKAGE...
echo >> {attempts}
[ "$(wc -l < {attempts})" -gt {failures} ] || exit 3
shift 5
folder=$1
shift
for package; do touch "$folder${{package##*/}}"; done
"""


def fake_go(programs: pinned.Programs, monkeypatch: pytest.MonkeyPatch, failures: int) -> Path:
    go, attempts = programs.module / "go", programs.module / "attempts"
    go.write_text(GO.format(attempts=attempts, failures=failures))
    go.chmod(0o755)
    monkeypatch.setattr(golang, "find", lambda _: go)
    monkeypatch.setattr(pinned, "PAUSE_S", 0.01)
    return attempts


def test_a_build_that_fails_is_tried_again(programs: pinned.Programs, monkeypatch: pytest.MonkeyPatch) -> None:
    attempts = fake_go(programs, monkeypatch, failures=2)
    assert {path.name for path in programs.ensure().iterdir()} == {"one", "two"}
    assert attempts.read_text() == 3 * "\n"


def test_a_build_that_keeps_failing_is_named(programs: pinned.Programs, monkeypatch: pytest.MonkeyPatch) -> None:
    attempts = fake_go(programs, monkeypatch, failures=9)
    with pytest.raises(missing.Missing, match=r"a built Title \(go build ended with 3\)"):
        programs.ensure()
    assert attempts.read_text() == pinned.ATTEMPTS * "\n"
    assert [path.suffix for path in pinned.cache().iterdir()] == [".lock"]


def test_another_pin_has_another_folder(programs: pinned.Programs) -> None:
    before = programs.folder
    (programs.module / "go.mod").write_text(GO_MOD.replace("30.14", "30.15"))
    assert programs.folder != before
    assert programs.folder.parent == before.parent == pinned.cache()


def test_the_version_of_kubernetes_is_read_from_go_mod(programs: pinned.Programs) -> None:
    version = pinned.kubernetes_version(programs.module)
    assert version == "v1.30.14"
    assert pinned.kubernetes_flags(version).endswith("version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=30")
