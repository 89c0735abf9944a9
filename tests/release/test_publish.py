"""What `make release` writes, apart from images: archives, chart, notes, checksums."""

import hashlib
import subprocess
import sys
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from release import __main__ as program
from release import archives, chart, identity, notes, publish, site
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
        assert archive.getnames() == ["root/LICENSE", "root/a", "root/link/y", "root/sub/y", "root/z"]
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


RELEASED = "# Changelog\n\n## Unreleased\n\n## 0.1.0 - 2026-11-22\n\n- first\n"
CHANGES = RELEASED.replace("## Unreleased\n", "## Unreleased\n\n- new\n")
INSTALLING = "# Installing\n\n## 7 Upgrade and roll back\n\nApply the other version.\n\n## 8 Uninstall\n\nDelete.\n"


def test_notes_are_the_changelogs_section() -> None:
    assert "- first" in notes.of(RELEASED, "0.1.0", INSTALLING)
    assert "- new" in notes.of(CHANGES, "0.2.0.dev1+gab", INSTALLING)
    assert "- first" not in notes.of(CHANGES, "0.2.0.dev1+gab", INSTALLING)


def test_notes_say_how_to_upgrade_and_roll_back() -> None:
    found = notes.of(RELEASED, "0.1.0", INSTALLING)
    assert "## Upgrade and roll back\n\nApply the other version.\n" in found
    assert "Delete." not in found
    installing = (identity.ROOT / "manifests" / "README.md").read_text()
    assert "vgpu version --server" in notes.of(RELEASED, "0.1.0", installing)


def test_a_release_needs_a_section_of_its_own() -> None:
    with pytest.raises(notes.MissingSection, match=r"CHANGELOG\.md has no section"):
        notes.of(CHANGES, "0.2.0", INSTALLING)
    with pytest.raises(notes.MissingSection, match=r"CHANGELOG\.md has no section"):
        notes.of(CHANGES, "0.1", INSTALLING)


@pytest.mark.parametrize("unreleased", ["", "## Unreleased\n\n", "## Unreleased\n\n### Added\n\n"])
def test_a_release_leaves_no_changes_without_a_version(unreleased: str) -> None:
    """They are in the tagged commit, and would be in no notes. An empty section, with headings or not, may stay."""
    changelog = f"# Changelog\n\n{unreleased}## 0.1.0\n\n- first\n"
    assert "- first" in notes.of(changelog, "0.1.0", INSTALLING)
    with pytest.raises(notes.UnassignedChanges, match=r"under Unreleased, which are in 0\.1\.0"):
        notes.of(CHANGES, "0.1.0", INSTALLING)


def test_images_are_copied_with_the_digests_that_a_release_names() -> None:
    """The archives of a release have all architectures; skopeo copies one of them unless it is told."""
    texts = [notes.of(CHANGES, "0.2.0.dev1+gab", INSTALLING)]
    texts += [(identity.ROOT / path).read_text() for path in ("manifests/README.md", "CONTRIBUTING.md")]
    for text in texts:
        copied = [line for line in text.splitlines() if "oci-archive:vgpushare-" in line]
        assert len(copied) == 1
        assert "skopeo copy --all " in copied[0]
    assert "vgpushare-webhook-0.2.0-dev.1.gab.tar" in texts[0]


@pytest.mark.parametrize("tags", [("v0.2.0",), (), ("0.2.0", "v0.2.0-rc.1")])
def test_a_publisher_reads_which_version_is_made_and_why_it_is_no_release(tags: tuple[str, ...]) -> None:
    commit = identity.Commit("1a2b3c4d5e6f" + "0" * 28, 1_796_000_000, tags)
    said = program.described(identity.identify("0.2.0", commit))
    assert said == "version 0.2.0" or said.endswith(", because no tag v0.2.0 is on this commit")
    assert ("because" in said) == ("v0.2.0" not in tags)
    changed = identity.identify("0.2.0", replace(commit, changes="ab" * 32))
    assert program.described(changed).endswith(", because this is no commit")


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("see [platforms](docs/platforms.md#k3s)", "see platforms (docs/platforms.md)"),
        ("see [docs/watch.md](docs/watch.md)", "see docs/watch.md"),
        ("[a site](https://example.invalid/a)", "[a site](https://example.invalid/a)"),
    ],
)
def test_notes_have_no_links_to_files_that_are_not_beside_them(written: str, shown: str) -> None:
    assert f"- {shown}\n" in notes.of(f"## Unreleased\n\n- {written}\n", "0.2.0.dev1", INSTALLING)


def test_only_what_others_can_build_again_is_a_release() -> None:
    commit = identity.Commit("1a2b3c4d5e6f" + "0" * 28, 1_796_000_000)
    assert program.uncommitted(identity.identify("0.2.0", commit)) == ""
    assert "not committed" in program.uncommitted(identity.identify("0.2.0", replace(commit, changes="ab" * 32)))
    assert "is not known" in program.uncommitted(identity.identify("0.2.0", None))


@pytest.mark.heavy
def test_a_folder_that_is_in_use_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for out in (tmp_path, tmp_path / "file"):
        done = subprocess.run(
            [sys.executable, "-m", "release", out], cwd=identity.ROOT, capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stderr.splitlines()[-1]) == (
            2, f"python -m release: error: {out} is not an empty folder",
        )  # fmt: skip


def test_a_program_that_fails_is_named_with_what_it_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    failed = [sys.executable, "-c", "import sys; sys.exit('no route to host')"]
    monkeypatch.setattr(publish, "publish", lambda *_: subprocess.run(failed, check=True, capture_output=True))
    monkeypatch.setattr(sys, "argv", ["release", str(tmp_path / "out"), "--uncommitted"])
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1796000000")
    with pytest.raises(SystemExit) as ended:
        program.main()
    assert str(ended.value).endswith("status 1\nno route to host")
    assert not capsys.readouterr().out


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


def test_the_documents_are_a_site_of_equal_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of one commit, whatever the time zone."""
    if not site.PROGRAM.exists():
        pytest.skip("needs the environment of `make docs`")
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1796000000")
    for name, zone in (("one", "UTC"), ("two", "Asia/Tokyo")):
        monkeypatch.setenv("TZ", zone)
        site.write(tmp_path / name, tmp_path / f"scratch-{name}")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    with tarfile.open(tmp_path / "one") as archive:
        assert {f"vgpushare-docs/{page}.html" for page in ("index", "guide", "install", "watch")} <= set(
            archive.getnames()
        )


def test_without_the_environment_of_the_site_a_publisher_reads_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(site, "PROGRAM", identity.ROOT / "build" / "absent" / "mkdocs")
    with pytest.raises(site.NoProgram, match="run `make docs` once"):
        site.write(tmp_path / "site.tar.gz", tmp_path / "scratch")


def test_notes_say_where_the_documents_are_and_what_checksums_show() -> None:
    text = notes.of(CHANGES, "0.2.0.dev1+gab", INSTALLING)
    assert site.archive("0.2.0-dev.1.gab") in text
    assert "Without `SHA256SUMS.asc` the release is not signed" in text
