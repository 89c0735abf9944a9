"""`python -m limiter.build`: compiles, checks or formats the limiter's C code."""

import argparse
import platform

from limiter import build
from limiter.build import check, linters, toolchain


def main() -> None:
    """Run the verb of the command line."""
    parser = argparse.ArgumentParser(prog="python -m limiter.build", description=build.__doc__)
    parser.add_argument("verb", nargs="?", choices=("build", "check", "format"), default="build")
    parser.add_argument("--target", choices=toolchain.ARCHITECTURES, default=platform.machine())
    arguments = parser.parse_args()
    if arguments.verb == "check":
        check.check()
    elif arguments.verb == "format":
        linters.format_in_place(build.c_files())
    else:
        build.build(arguments.target)


if __name__ == "__main__":
    main()
