"""The signature of a release, by a throwaway key in a throwaway home of GnuPG."""

import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from release import __main__ as program
from release import identity, notes, publish, signing
from tests.release.test_publish import CHANGES, INSTALLING

PUBLISHER = "Publisher <publisher@example.invalid>"


class GnupgHome:
    """A home of GnuPG in a short path, because an agent's socket is below it."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="gpg-", dir="/tmp"))

    def run(self, *arguments: str, content: bytes = b"") -> bytes:
        command = ["gpg", "--homedir", str(self.path), "--batch", *arguments]
        return subprocess.run(command, input=content, capture_output=True, check=True).stdout

    def made_key(self) -> str:
        """Make a key without passphrase, and return its fingerprint."""
        self.run("--passphrase", "", "--quick-generate-key", PUBLISHER, "ed25519", "sign", "never")
        listed = self.run("--with-colons", "--list-secret-keys").decode()
        return re.search(r"^fpr:+(\w+):", listed, re.MULTILINE)[1]  # type: ignore[index]

    def remove(self) -> None:
        subprocess.run(["gpgconf", "--homedir", self.path, "--kill", "all"], check=False, capture_output=True)
        shutil.rmtree(self.path, ignore_errors=True)


@pytest.fixture
def homes(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[GnupgHome, GnupgHome]]:
    """The homes of a publisher, whose is in use, and of a user."""
    if shutil.which("gpg") is None:
        pytest.skip("needs gpg")
    made = (GnupgHome(), GnupgHome())
    monkeypatch.setenv("GNUPGHOME", str(made[0].path))
    yield made
    for home in made:
        home.remove()


@pytest.fixture
def released(tmp_path: Path) -> Path:
    """A folder with a file and its checksum."""
    folder = tmp_path / "release"
    folder.mkdir()
    (folder / "vgpushare.whl").write_bytes(b"wheel")
    (folder / publish.CHECKSUMS).write_text(publish.checksums(folder))
    return folder


def documented() -> list[str]:
    """The commands by which the notes tell a user to verify a release, without the one that gets the key."""
    lines = notes.of(CHANGES, "0.2.0.dev1+gab", INSTALLING).splitlines()
    return [line.strip() for line in lines if line.startswith(("    gpg --verify", "    sha256sum"))]


def verified(user: GnupgHome, folder: Path) -> list[int]:
    """Run the documented commands as a user, and return their statuses."""
    environment = {"GNUPGHOME": str(user.path), "PATH": "/usr/bin:/bin", "LC_ALL": "C"}
    commands = documented()
    assert len(commands) == 2
    return [
        subprocess.run(["sh", "-c", command], cwd=folder, env=environment, capture_output=True, check=False).returncode
        for command in commands
    ]


def test_a_user_verifies_a_release_as_its_notes_say(homes: tuple[GnupgHome, GnupgHome], released: Path) -> None:
    publisher, user = homes
    fingerprint = publisher.made_key()
    assert signing.sign(released / publish.CHECKSUMS, "publisher@example.invalid") == fingerprint
    assert verified(user, released)[0] != 0, "the user does not have the publisher's key"
    user.run("--import", content=publisher.run("--export", fingerprint))
    assert verified(user, released) == [0, 0]
    (released / "vgpushare.whl").write_bytes(b"other")
    assert verified(user, released)[0] == 0
    assert verified(user, released)[1] != 0
    (released / publish.CHECKSUMS).write_text(publish.checksums(released))
    assert verified(user, released)[0] != 0, "the file and its checksum were replaced"


def test_a_signature_changes_no_other_file(homes: tuple[GnupgHome, GnupgHome], released: Path) -> None:
    """Whoever builds the release again has no key, and must get the same checksums."""
    before = publish.checksums(released)
    signing.sign(released / publish.CHECKSUMS, homes[0].made_key())
    assert publish.checksums(released) == before == (released / publish.CHECKSUMS).read_text()


@pytest.mark.usefixtures("homes")
@pytest.mark.parametrize(
    ("key", "why"),
    [("nobody@example.invalid", r"(?s)does not sign with nobody@example\.invalid: .*No secret key"), (" ", "is empty")],
)
def test_a_key_that_does_not_sign_is_told_before_anything_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str, why: str
) -> None:
    monkeypatch.setattr(publish, "publish", lambda *_: pytest.fail("the release was begun"))
    monkeypatch.setattr(sys, "argv", ["release", str(tmp_path / "out"), "--uncommitted", "--signing-key", key])
    with pytest.raises(SystemExit, match=why):
        program.main()


def test_a_machine_without_gnupg_is_told_before_anything_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(signing.CannotSign, match="no program gpg, which signs: install GnuPG"):
        signing.try_key("publisher@example.invalid")


def test_the_program_signs_what_it_has_written(
    homes: tuple[GnupgHome, GnupgHome],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    fingerprint, out = homes[0].made_key(), tmp_path / "out"

    def published(folder: Path, *_: object) -> None:
        folder.mkdir()
        (folder / "file").write_text("made")
        (folder / publish.CHECKSUMS).write_text(publish.checksums(folder))

    monkeypatch.setattr(publish, "publish", published)
    monkeypatch.setattr(sys, "argv", ["release", str(out), "--uncommitted", "--signing-key", fingerprint])
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1796000000")
    program.main()
    assert f"signed by {fingerprint}: SHA256SUMS.asc" in capsys.readouterr().err
    homes[0].run("--verify", str(out / "SHA256SUMS.asc"), str(out / publish.CHECKSUMS))


@pytest.mark.parametrize(
    ("given", "passed"),
    [([], None), (["SIGNING_KEY=A B"], '--signing-key "A B"'), (["SIGNING_KEY="], '--signing-key ""')],
)
def test_make_passes_the_key_on_also_an_empty_one(given: list[str], passed: str | None) -> None:
    """A key that a build's settings leave empty is an error, and no release without a signature."""
    command = ["make", "--dry-run", "--assume-old", ".venv/.dev", "--assume-old", "build/docs/.done", "release", *given]
    done = subprocess.run(command, cwd=identity.ROOT, capture_output=True, text=True, check=True)
    (line,) = [line for line in done.stdout.splitlines() if "-m release dist/release" in line]
    assert ("--signing-key" in line) == (passed is not None)
    assert passed is None or line.rstrip().endswith(passed)
