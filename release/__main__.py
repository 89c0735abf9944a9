"""`python -m release OUT` (`make release`)."""

import argparse
import os
import platform
import sys
from pathlib import Path

from images import build, debian
from release import identity, publish


def main() -> None:
    """Write the files of a release, and print their checksums."""
    parser = argparse.ArgumentParser(prog="python -m release", description="Everything that a publisher uploads.")
    parser.add_argument("out", type=Path, help="an empty folder")
    parser.add_argument("--architecture", nargs="+", choices=debian.ARCHITECTURES, default=list(debian.ARCHITECTURES))
    parser.add_argument("--krew-url", default="", help="where the archive of the kubectl plugin will be published")
    arguments = parser.parse_args()
    source = identity.of_build(os.environ)
    if arguments.out.exists() and any(arguments.out.iterdir()):
        parser.error(f"{arguments.out} is not empty")
    os.environ["SOURCE_DATE_EPOCH"] = str(int(source.time.timestamp()))  # what hatchling gives to files
    builder = build.Builder(build.CACHE, platform.machine())
    publish.publish(arguments.out, source, builder, arguments.architecture, arguments.krew_url)
    sys.stdout.write((arguments.out / publish.CHECKSUMS).read_text())


if __name__ == "__main__":
    main()
