"""`python -m images build|scheduler|lock` (`make images`, `make lock-images`)."""

import argparse
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path

from images import build, debian, failed_program, kustomization, oci, scheduler, wheels
from release import identity


def main() -> None:
    """Run the command of the command line; an expected error ends it with status 1 and its message."""
    arguments = _parser().parse_args()
    try:
        arguments.run(arguments)
    except subprocess.CalledProcessError as error:
        sys.exit(f"images: {failed_program.words(error)}")
    except (debian.PackageError, build.IncompleteImage, identity.WrongTag) as error:
        sys.exit(f"images: {error}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m images", description="OCI archives of vgpushare.")
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser("build", help="write an archive for each part and architecture")
    command.set_defaults(run=_build)
    command.add_argument("out", type=Path, help="folder of the archives")
    command.add_argument(
        "--architecture",
        nargs="+",
        choices=debian.ARCHITECTURES,
        default=[platform.machine()],
        help="default: this machine's",
    )
    command.add_argument("--mirror", default=debian.MIRROR, help="URL of Debian's archives (default: %(default)s)")
    command = commands.add_parser("scheduler", help="write an archive of a kube-scheduler that was built here")
    command.set_defaults(run=_scheduler)
    command.add_argument("out", type=Path, help="folder of the archive")
    command.add_argument("program", type=Path, help="the program kube-scheduler, linked statically")
    command = commands.add_parser("lock", help="pin the newest Debian packages in debian.lock")
    command.set_defaults(run=_lock)
    command.add_argument("--mirror", default=debian.MIRROR, help="URL of Debian's archives (default: %(default)s)")
    command = commands.add_parser("lock-wheels", help="list the wheels that run.lock allows")
    command.set_defaults(run=_lock_wheels)
    return parser


def _build(arguments: argparse.Namespace) -> None:
    builder = build.Builder(build.CACHE, platform.machine(), arguments.mirror)
    source = identity.of_build(os.environ)
    arguments.out.mkdir(parents=True, exist_ok=True)
    for architecture in arguments.architecture:
        with tempfile.TemporaryDirectory() as scratch:
            for built in builder.images(architecture, Path(scratch), source):
                target = _write(built.image, arguments.out)
                target.with_suffix(".cdx.json").write_text(built.materials)
    (arguments.out / "kustomization.yaml").write_text(kustomization.component(source.tag))


def _scheduler(arguments: argparse.Namespace) -> None:
    arguments.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        architecture = debian.ARCHITECTURES[platform.machine()]
        _write(scheduler.image(arguments.program, architecture, Path(scratch)), arguments.out)


def _lock(arguments: argparse.Namespace) -> None:
    packages = []
    for architecture in debian.ARCHITECTURES.values():
        with tempfile.TemporaryDirectory() as scratch:
            packages += debian.Apt(Path(scratch), architecture, arguments.mirror).candidates(debian.NAMES)
    debian.LOCK.write_text(debian.formatted(packages))


def _lock_wheels(_: argparse.Namespace) -> None:
    wheels.LOCK.write_text(wheels.lock(build.PROJECT / "requirements" / "run.lock"))


def _write(image: oci.Image, folder: Path) -> Path:
    name, _, version = image.reference.rpartition("/")[2].partition(":")
    target = folder / f"{name}-{version}-{image.architecture}.tar"
    oci.write([image], target)
    size = sum(layer.size for layer in image.layers)
    sys.stdout.write(f"{image.reference} {image.architecture} {image.digest} {size / 1e6:.1f} MB {target}\n")
    return target


if __name__ == "__main__":
    main()
