"""The lock of Debian's packages, and which of their files are in an image."""

import re
import shutil
import socket
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from images import debian

HASH = "0f" * 32
URIS = f"""'http://deb.debian.org/pool/z/zlib1g.deb' zlib1g_1%3a1.2.13_arm64.deb 8 SHA256:{HASH}
'http://deb.debian.org/debian/pool/main/y/y.deb' y_2~deb12u1_all.deb 26136 SHA256:{HASH}
"""

WORDS = st.from_regex(r"[a-z0-9][a-z0-9.+:~-]{0,9}", fullmatch=True)
PACKAGES = st.builds(debian.Package, WORDS, WORDS, WORDS, st.just(HASH))


@pytest.mark.heavy
@given(st.lists(PACKAGES, unique=True))
def test_the_lock_is_read_as_it_was_written(packages: list[debian.Package]) -> None:
    assert debian.parse(debian.formatted(packages)) == sorted(packages)


@pytest.mark.parametrize("line", ["amd64 libc6 2.36", f"amd64 libc6 2.36 {HASH} more", "amd64 libc6 2.36 beef"])
def test_a_line_that_is_none_is_refused_by_its_number(line: str) -> None:
    with pytest.raises(ValueError, match="line 2"):
        debian.parse(f"# comment\n{line}\n")


def test_apts_list_is_read_with_epochs() -> None:
    assert debian.listed(URIS, "arm64") == [
        debian.Package("arm64", "zlib1g", "1:1.2.13", HASH),
        debian.Package("arm64", "y", "2~deb12u1", HASH),
    ]


def test_the_lock_pins_every_package_for_every_architecture() -> None:
    pinned = debian.parse(debian.LOCK.read_text())
    assert {(package.architecture, package.name) for package in pinned} == {
        (architecture, name) for architecture in debian.ARCHITECTURES.values() for name in debian.NAMES
    }


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("./lib/x86_64-linux-gnu/libc.so.6", "usr/lib/x86_64-linux-gnu/libc.so.6"),
        ("./lib64/ld-linux-x86-64.so.2", "usr/lib64/ld-linux-x86-64.so.2"),
        ("./usr/bin/python3.11", "usr/bin/python3.11"),
        ("./etc/os-release", "etc/os-release"),
        ("./usr/share/doc/libc6/copyright", "usr/share/doc/libc6/copyright"),
        ("./usr/share/doc/libc6/changelog.gz", None),
        ("./usr/share/man/man1/python.1.gz", None),
        ("./sbin/ldconfig", None),
        ("./usr/bin/ldd", None),
        ("./etc/profile", None),
        ("./usr/lib/python3.11/lib-dynload/readline.cpython-311-x86_64-linux-gnu.so", None),
        ("./usr/lib/python3.11/lib-dynload/_ssl.cpython-311-x86_64-linux-gnu.so",) * 2,
    ],
)
def test_programs_and_documents_are_left_out(name: str, place: str | None) -> None:
    assert debian.destination(name) == (place and place.removeprefix("./"))


@pytest.mark.parametrize("name", ["../etc/passwd", "./usr/../../x", "/etc/passwd"])
def test_a_file_outside_of_the_image_is_refused(name: str) -> None:
    with pytest.raises(debian.PackageError, match=re.escape(name)):
        debian.destination(name)


def test_a_snapshot_of_the_archive_can_be_named() -> None:
    text = debian.sources("http://snapshot.debian.org/archive/{archive}/20261123T000000Z")
    assert " http://snapshot.debian.org/archive/debian/20261123T000000Z bookworm main\n" in text
    assert " http://snapshot.debian.org/archive/debian-security/20261123T000000Z bookworm-security main\n" in text


def test_licences_are_read_only_of_files_that_name_them(tmp_path: Path) -> None:
    texts = {
        "zlib1g": "Format: https://example.invalid/copyright-format/1.0/\n\nFiles: *\nLicense: Zlib\n",
        "python3.11": "This package was put together by hand.\n\nLicense: Permission is granted to any person\n",
    }
    for package, text in texts.items():
        (tmp_path / "usr/share/doc" / package).mkdir(parents=True)
        (tmp_path / "usr/share/doc" / package / "copyright").write_text(text)
    assert debian.licences(tmp_path) == {"python3.11": "see /usr/share/doc/python3.11/copyright", "zlib1g": "Zlib"}


@pytest.mark.heavy
@pytest.mark.skipif(shutil.which("apt-get") is None, reason="needs apt-get")
def test_an_archive_that_cannot_be_reached_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.setenv(name, "127.0.0.1")
    with socket.socket() as refusing:
        refusing.bind(("127.0.0.1", 0))  # nothing listens there
        mirror = f"http://127.0.0.1:{refusing.getsockname()[1]}/{{archive}}"
        with pytest.raises(debian.PackageError, match=r"apt-get update: .*Failed to fetch"):
            debian.Apt(tmp_path, "amd64", mirror)


class Mirror(debian.Apt):
    """apt-get with a mirror that has only the packages of URIS."""

    def _run(self, *arguments: str) -> str:
        if "--print-uris" in arguments:
            return URIS
        if arguments[0] == "download" and "zlib1g=1:1.2.12" in arguments:
            raise debian.PackageError("apt-get download: Version '1:1.2.12' for 'zlib1g' was not found")
        return ""


def test_versions_that_have_left_the_mirror_are_named_with_what_to_do(tmp_path: Path) -> None:
    pinned = [debian.Package("arm64", "zlib1g", "1:1.2.12", HASH), debian.Package("arm64", "y", "2~deb12u1", HASH)]
    with pytest.raises(debian.PackageError) as refused:
        Mirror(tmp_path, "arm64").download(pinned)
    assert "zlib1g 1:1.2.12 (now 1:1.2.13). Run `make lock-images`" in str(refused.value)
    assert " y " not in str(refused.value)


def test_another_error_of_apt_stays_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mirror = Mirror(tmp_path, "arm64")
    monkeypatch.setattr(mirror, "candidates", lambda _: [debian.Package("arm64", "zlib1g", "1:1.2.12", HASH)])
    with pytest.raises(debian.PackageError, match="was not found"):
        mirror.download([debian.Package("arm64", "zlib1g", "1:1.2.12", HASH)])
