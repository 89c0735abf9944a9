"""What `make release` writes, apart from images: archives, chart, notes, checksums."""

import hashlib
import subprocess
import tarfile
from pathlib import Path

import yaml

from release import archives, chart, notes, publish
from tests.manifests import chart as rendering

TAG = "0.2.0-dev.20261130010640.g1a2b3c4d5e6f"


def test_equal_files_give_equal_archives_whatever_their_times(tmp_path: Path) -> None:
    made = []
    for name in ("a", "b"):
        folder = tmp_path / name
        (folder / "sub").mkdir(parents=True)
        for file in ("z", "sub/y", "a") if name == "a" else ("a", "sub/y", "z"):
            (folder / file).write_text(file)
        (tmp_path / name / "link").symlink_to("sub")
        archives.write(tmp_path / f"{name}.tgz", folder, "root")
        made.append((tmp_path / f"{name}.tgz").read_bytes())
    assert made[0] == made[1]
    with tarfile.open(tmp_path / "a.tgz") as archive:
        assert archive.getnames() == ["root/a", "root/link/y", "root/sub/y", "root/z"]
        assert {(entry.mtime, entry.uname, entry.type) for entry in archive} == {(0, "root", tarfile.REGTYPE)}


def test_the_published_chart_has_its_version_and_real_files(tmp_path: Path) -> None:
    for name in ("one", "two"):
        chart.write(tmp_path / f"{name}.tgz", tmp_path / f"scratch-{name}", TAG)
    assert (tmp_path / "one.tgz").read_bytes() == (tmp_path / "two.tgz").read_bytes()
    with tarfile.open(tmp_path / "one.tgz") as archive:
        assert all(entry.isfile() for entry in archive)
        described = yaml.safe_load(archive.extractfile("vgpushare/Chart.yaml").read())  # type: ignore[union-attr]
    assert (described["version"], described["appVersion"]) == (TAG, TAG)


def test_helm_renders_the_published_chart_as_the_stamped_manifests(tmp_path: Path) -> None:
    chart.write(tmp_path / "chart.tgz", tmp_path / "scratch", TAG)
    (tmp_path / "values.yaml").write_text(chart.digest_values({"webhook": f"sha256:{'0' * 64}"}))
    command: list[str | Path] = [
        rendering.program(),
        "template",
        "vgpushare",
        tmp_path / "chart.tgz",
        "-n",
        "vgpu-system",
        "-f",
    ]
    done = subprocess.run([*command, tmp_path / "values.yaml"], capture_output=True, text=True, check=True)
    assert f"image: vgpushare-extender:{TAG}\n" in done.stdout
    assert f"image: vgpushare-webhook@sha256:{'0' * 64}\n" in done.stdout
    assert ":dev\n" not in done.stdout


def test_notes_are_the_changelogs_section() -> None:
    changelog = "# Changelog\n\n## Unreleased\n\n- new\n\n## 0.1.0 - 2026-11-22\n\n- first\n"
    assert "- first" in notes.of(changelog, "0.1.0")
    assert "- new" in notes.of(changelog, "0.2.0.dev1+gab")
    assert "- first" not in notes.of(changelog, "0.2.0.dev1+gab")


def test_checksums_are_those_of_sha256sum(tmp_path: Path) -> None:
    (tmp_path / "b").write_bytes(b"b")
    (tmp_path / "a").write_bytes(b"a")
    text = publish.checksums(tmp_path)
    assert text.splitlines()[0] == f"{hashlib.sha256(b'a').hexdigest()}  a"
    (tmp_path / publish.CHECKSUMS).write_text(text)
    subprocess.run(
        ["sha256sum", "--check", "--strict", publish.CHECKSUMS], cwd=tmp_path, check=True, capture_output=True
    )
    assert publish.checksums(tmp_path) == text
