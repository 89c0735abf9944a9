"""`python -m release OUT` (`make release`)."""

import argparse
import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Final

from images import build, debian, failed_program
from release import identity, notes, publish, signing, site
from release.identity import BuildIdentity

_EXPECTED: Final = (
    debian.PackageError,
    build.IncompleteImage,
    identity.WrongTag,
    notes.MissingSection,
    notes.UnassignedChanges,
    signing.CannotSign,
    site.NoProgram,
)


def main() -> None:
    """Write the files of a release, and print their checksums; an expected error ends it with status 1."""
    parser = _parser()
    arguments = parser.parse_args()
    if arguments.out.exists() and (not arguments.out.is_dir() or any(arguments.out.iterdir())):
        parser.error(f"{arguments.out} is not an empty folder")
    try:
        _write(arguments)
    except subprocess.CalledProcessError as error:
        sys.exit(f"release: {failed_program.words(error)}")
    except _EXPECTED as error:
        sys.exit(f"release: {error}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m release", description="Everything that a publisher uploads.")
    parser.add_argument("out", type=Path, metavar="OUT", help="folder that is made, or an empty one")
    parser.add_argument(
        "--architecture",
        nargs="+",
        choices=debian.ARCHITECTURES,
        default=list(debian.ARCHITECTURES),
        help="of the images and wheels (default: all)",
    )
    parser.add_argument("--krew-url", default="", metavar="URL", help="where the plugin's archive will be published")
    parser.add_argument("--mirror", default=debian.MIRROR, help="URL of Debian's archives (default: %(default)s)")
    parser.add_argument(
        "--signing-key",
        metavar="KEY",
        help="fingerprint of the GnuPG key that signs the checksums (default: no signature)",
    )
    parser.add_argument(
        "--uncommitted", action="store_true", help="also of a tree that is no commit, which nobody can build again"
    )
    return parser


def _write(arguments: argparse.Namespace) -> None:
    source = identity.of_build(os.environ)
    if not arguments.uncommitted and (problem := uncommitted(source)):
        sys.exit(f"release: {problem}; to try a release without, give --uncommitted")
    if arguments.signing_key is not None:
        signing.try_key(arguments.signing_key)
    _say(described(source))
    os.environ["SOURCE_DATE_EPOCH"] = str(int(source.time.timestamp()))  # what hatchling gives to files
    builder = build.Builder(build.CACHE, platform.machine(), arguments.mirror)
    publish.publish(arguments.out, source, builder, arguments.architecture, arguments.krew_url, _say)
    if arguments.signing_key is not None:
        fingerprint = signing.sign(arguments.out / publish.CHECKSUMS, arguments.signing_key)
        _say(f"signed by {fingerprint}: {publish.CHECKSUMS}{signing.SUFFIX}")
    sys.stdout.write((arguments.out / publish.CHECKSUMS).read_text())


def uncommitted(source: BuildIdentity) -> str:
    """Return why another machine cannot build the same from the commit, and what to do; empty where it can."""
    if not source.commit:
        return "the commit of this tree is not known: build in a checkout, or from what `git archive` wrote"
    if source.is_changed:
        return "this checkout has changes, or new files, that are not committed (see git status): commit or remove them"
    return ""


def described(source: BuildIdentity) -> str:
    """Return which version is made, and why it is no release, such as a tag that is spelled in another way."""
    release, _, later = source.version.partition(".dev")
    why = f"no tag v{release} is on this commit" if source.commit and not source.is_changed else "this is no commit"
    return f"version {source.version}" + (f", because {why}" if later else "")


def _say(what: str) -> None:
    sys.stderr.write(f"release: {what}\n")


if __name__ == "__main__":
    main()
