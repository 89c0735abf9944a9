"""The publisher's signature of a release's checksums, by GnuPG.

Only the checksums are signed: they have a line for every other file, and `images.txt`, which has the digest of every
image, is one of these.
"""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Final

PROGRAM: Final = "gpg"
SUFFIX: Final = ".asc"
_TRIED: Final = b"vgpushare\n"
_VALID: Final = re.compile(r"^\[GNUPG:\] VALIDSIG .*?(\w+)$", re.MULTILINE)  # its last word: the primary key


class CannotSign(Exception):
    """There is no GnuPG, or it does not sign with the publisher's key."""


def try_key(key: str) -> None:
    """Sign a few bytes with a key, and forget the signature. Raises CannotSign.

    `key` is what GnuPG takes as a user's name: a fingerprint, a key's ID, or an e-mail address.
    """
    if not key.strip():
        raise CannotSign(
            "the signing key is empty: give a fingerprint, or no key at all for a release without signature"
        )
    if shutil.which(PROGRAM) is None:
        raise CannotSign(f"there is no program {PROGRAM}, which signs: install GnuPG")
    _sign(key, _TRIED)


def sign(file: Path, key: str) -> str:
    """Write the signature of a file beside it, and return the fingerprint of the key. Raises CannotSign."""
    signature = file.with_name(file.name + SUFFIX)
    signature.write_bytes(_sign(key, file.read_bytes()))
    verified = _run(["--verify", signature, file])
    found = _VALID.search(verified.stdout.decode())
    if verified.returncode or found is None:
        signature.unlink()
        raise CannotSign(f"{PROGRAM} does not verify its own signature: {_said(verified)}")
    return found[1]


def _sign(key: str, content: bytes) -> bytes:
    done = subprocess.run(
        [PROGRAM, "--batch", "--armor", "--local-user", key, "--detach-sign"],
        input=content,
        capture_output=True,
        check=False,
    )
    if done.returncode:
        raise CannotSign(f"{PROGRAM} does not sign with {key}: {_said(done)}")
    return done.stdout


def _run(arguments: list[str | Path]) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([PROGRAM, "--batch", "--status-fd", "1", *arguments], capture_output=True, check=False)


def _said(done: subprocess.CompletedProcess[bytes]) -> str:
    return done.stderr.decode(errors="replace").strip()
