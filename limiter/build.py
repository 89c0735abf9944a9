"""Compiles the shared library and the arbiter: `python -m limiter.build`, and `check`, `format`.

The compiler is that of the `ziglang` wheel, which links for an old glibc and for arm64 on any machine. The headers come
from NVIDIA's wheels (see `limiter.headers`). Neither is needed to run what is compiled.
"""

import argparse
import platform
import subprocess
import sys
import tempfile
from collections.abc import Collection, Sequence
from importlib import util
from pathlib import Path

from limiter import elf, function_list, headers
from limiter.installation import ARBITER, LIBRARY

GLIBC = (2, 17)
ARCHITECTURES = ("x86_64", "aarch64")
PROXIES = {"libcuda.so.1": "cuda", "libnvidia-ml.so.1": "nvml"}  # soname: which library

_HERE = Path(__file__).parent
_SOURCES = _HERE / "src"
_ARBITER_SOURCES = _HERE / "arbiter"
_EXPORTS = _SOURCES / "exports.map"
_SHARED_WITH_ARBITER = _SOURCES / "common"
_WARNINGS = (
    *("-Wall", "-Wextra", "-Werror", "-Wshadow", "-Wvla", "-Wconversion", "-Wsign-conversion"),
    *("-Wstrict-prototypes", "-Wmissing-prototypes"),
)
_LINK_ARBITER = ("-pie", "-Wl,-z,relro", "-Wl,-z,now", "-Wl,-s")
_LINK = ("-Wl,-z,defs", "-Wl,-z,nodelete", "-Wl,-z,relro", "-Wl,-z,now", "-Wl,-Bsymbolic")
_NEEDED = {"libc.so.6", "libdl.so.2", "libpthread.so.0", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}
_LIBC_HEADERS = ("x86-linux-gnu", "generic-glibc", "x86-linux-any", "any-linux-any")  # as zig cc -v lists them
_TIDY_CONFIG = _HERE.parent / ".clang-tidy"


def proxy_name(kind: str) -> str:
    """Return the file name of the proxy (see `limiter.interpose`) for one of NVIDIA's libraries."""
    return f"libvgpushare-{kind}.so"


def proxy_loader_name(kind: str) -> str:
    """Return the file name of the library that loads a proxy under both of its names."""
    return f"libvgpushare-{kind}-names.so"


def outputs(folder: Path = _HERE) -> list[Path]:
    """Return every file that a build creates."""
    proxies = [folder / name(kind) for kind in PROXIES.values() for name in (proxy_name, proxy_loader_name)]
    return [folder / LIBRARY, *proxies, folder / ARBITER]


def is_stale(folder: Path = _HERE) -> bool:
    """Whether a file of the build is missing, or older than the sources."""
    made = [path.stat().st_mtime for path in outputs(folder) if path.is_file()]
    newest = max(path.stat().st_mtime for path in (*_c_files(), _EXPORTS, Path(__file__)))
    return len(made) < len(outputs(folder)) or min(made) < newest


def flags() -> list[str]:
    """Return the flags with which every C file is compiled."""
    return ["-std=gnu11", "-D_GNU_SOURCE", "-fPIC", *_WARNINGS, f"-I{_SOURCES}", "-isystem", str(headers.folder())]


def compiler(architecture: str) -> list[str]:
    """Return the C compiler's command for an architecture and the oldest glibc that is supported."""
    target = f"{architecture}-linux-gnu.{GLIBC[0]}.{GLIBC[1]}"
    return [sys.executable, "-m", "ziglang", "cc", "-target", target, "-fno-sanitize=undefined"]


def build(architecture: str, folder: Path = _HERE) -> None:
    """Compile the library, its proxies and the arbiter into `folder`, and check them."""
    exports = f"-Wl,--version-script={_EXPORTS}"
    options = ["-O2", "-flto", "-g0", "-fvisibility=hidden", "-shared", f"-Wl,-soname,{LIBRARY}", exports, *_LINK]
    libraries = ["-ldl", "-lpthread"]
    _run(
        [
            *compiler(architecture),
            *flags(),
            *options,
            *map(str, library_sources()),
            *libraries,
            "-o",
            str(folder / LIBRARY),
        ]
    )
    for soname, kind in PROXIES.items():
        _build_proxy(architecture, soname, kind, folder)
    check_library(folder / LIBRARY)
    _build_arbiter(architecture, folder)


def library_sources() -> list[Path]:
    """Return the library's C files."""
    return sorted(_SOURCES.rglob("*.c"))


def arbiter_sources() -> list[Path]:
    """Return the arbiter's C files."""
    return [*sorted(_ARBITER_SOURCES.glob("*.c")), *sorted(_SHARED_WITH_ARBITER.glob("*.c"))]


def _build_arbiter(architecture: str, folder: Path) -> None:
    command = [*compiler(architecture), *flags(), "-O2", "-g0", *_LINK_ARBITER, *map(str, arbiter_sources())]
    _run([*command, "-o", str(folder / ARBITER)])
    _check_needs(folder / ARBITER)


def _build_proxy(architecture: str, soname: str, kind: str, folder: Path) -> None:
    """Link the two libraries without code that `limiter.interpose` loads.

    The proxy has NVIDIA's soname, and depends on our library first and the real one second. The other library needs
    the proxy twice, by its soname and by the name without a version, so that the loader knows it by both.
    """
    with tempfile.TemporaryDirectory() as scratch:
        real = _link_empty(architecture, Path(scratch) / f"libvgpu-real-{kind}.so")
        proxy = _link_empty(architecture, folder / proxy_name(kind), soname, [folder / LIBRARY, real])
        bare = _link_empty(architecture, Path(scratch) / soname.removesuffix(".1"))
        _link_empty(architecture, folder / proxy_loader_name(kind), None, [proxy, bare])


def _link_empty(architecture: str, path: Path, soname: str | None = None, needed: Sequence[Path] = ()) -> Path:
    command = [*compiler(architecture), "-shared", "-nostdlib", "-x", "c", "/dev/null", "-x", "none"]
    options = [
        f"-Wl,-soname,{soname or path.name}",
        "-Wl,-rpath,$ORIGIN",
        "-Wl,--disable-new-dtags",
        "-Wl,--no-as-needed",
    ]
    _run([*command, *options, *map(str, needed), "-o", str(path)])
    return path


def check_library(library: Path) -> None:
    """Exit unless the library exports exactly the function list, and needs the C library only, in an old version."""
    seen = elf.read(library.read_bytes())
    if differing := seen.exports ^ (function_list.hooked() | {"dlsym", "dlvsym"}):
        raise SystemExit(f"{library.name}: exports differ from functions.h: {sorted(differing)}")
    _check_needs(library)


def _check_needs(program: Path) -> None:
    seen = elf.read(program.read_bytes())
    if strange := seen.needed - _NEEDED:
        raise SystemExit(f"{program.name}: needs {sorted(strange)}")
    if newer := [version for version in seen.glibc if version > GLIBC]:
        raise SystemExit(f"{program.name}: needs glibc {newer}")


def check_list(listed: Collection[str]) -> None:
    """Exit unless NVIDIA's headers, of all versions together, declare exactly the functions of the list."""
    wrong, known = [], set[str]()
    for folder in headers.FOLDERS:
        declared = headers.declared(folder, compiler(platform.machine()))
        known |= declared
        if lacking := declared.difference(listed):
            wrong.append(f"nvidia/{folder} declares what functions.h lacks: {sorted(lacking)}")
    if unknown := set(listed) - known:
        wrong.append(f"functions.h lists what no header declares: {sorted(unknown)}")
    if wrong:
        raise SystemExit("; ".join(wrong))


def check() -> None:
    """Check the C code: the function list, the format, clang-tidy, builds for both architectures, the ELF files."""
    check_list(function_list.read())
    _run(["clang-format", "--dry-run", "-Werror", *map(str, _c_files())])
    sources = [str(path) for path in _c_files() if path.suffix == ".c"]
    _run(["clang-tidy", "--quiet", f"--config-file={_TIDY_CONFIG}", *sources, "--", *flags(), *_libc_headers()])
    with tempfile.TemporaryDirectory() as scratch:
        for architecture in ARCHITECTURES:
            build(architecture, Path(scratch))


def _libc_headers() -> list[str]:
    """Return clang-tidy's options for the headers of the supported glibc; the machine may have no headers."""
    zig = util.find_spec("ziglang")
    root = Path(zig.origin).parent if zig and zig.origin else Path()
    folders = [root / "lib" / "libc" / "include" / name for name in _LIBC_HEADERS]
    options = [option for folder in folders for option in ("-isystem", str(folder))]
    return ["--target=x86_64-linux-gnu", "-nostdlibinc", f"-D__GLIBC_MINOR__={GLIBC[1]}", *options]


def _c_files() -> list[Path]:
    return [path for folder in (_SOURCES, _ARBITER_SOURCES) for path in sorted(folder.rglob("*.[ch]"))]


def _run(command: Sequence[str]) -> None:
    """Run a tool, from the folder of this Python where it is there; exit with its status where it fails."""
    beside = Path(sys.executable).parent / command[0]
    done = subprocess.run([str(beside) if beside.is_file() else command[0], *command[1:]], check=False)
    if done.returncode:
        raise SystemExit(done.returncode)


def main() -> None:
    """Run the verb of the command line."""
    parser = argparse.ArgumentParser(prog="python -m limiter.build", description=__doc__)
    parser.add_argument("verb", nargs="?", choices=("build", "check", "format"), default="build")
    parser.add_argument("--target", choices=ARCHITECTURES, default=platform.machine())
    arguments = parser.parse_args()
    if arguments.verb == "check":
        check()
    elif arguments.verb == "format":
        _run(["clang-format", "-i", *map(str, _c_files())])
    else:
        build(arguments.target)


if __name__ == "__main__":
    main()
