"""Compiles the shared library, its proxies and the arbiter: `python -m limiter.build`, and `check`, `format`.

The headers come from NVIDIA's wheels (`limiter.build.headers`), the compiler from another wheel
(`limiter.build.toolchain`), pyelftools reads what was compiled. None of them is needed to run it.
"""

import platform
import tempfile
from pathlib import Path

from limiter.build import toolchain
from limiter.build.toolchain import compiler, link_empty, run
from limiter.installation import ARBITER, LIBRARY

PROXIES = {"libcuda.so.1": "cuda", "libnvidia-ml.so.1": "nvml"}  # soname: which library
SOURCES = Path(__file__).parents[1] / "src"

_OUTPUT = Path(__file__).parents[1]
_ARBITER_SOURCES = _OUTPUT / "arbiter"
_EXPORTS = SOURCES / "exports.map"
_SHARED_WITH_ARBITER = SOURCES / "common"
_LINK_ARBITER = ("-pie", "-Wl,-z,relro", "-Wl,-z,now", "-Wl,-s")
# In the initial-exec model, thread-local variables need no __tls_get_addr. That is in glibc's loader, and a program of
# musl loads no library that needs glibc's loader. They take 16 bytes of the space that glibc keeps for late libraries.
_COMPILE = ("-O2", "-flto", "-g0", "-fvisibility=hidden", "-ftls-model=initial-exec")
_LINK = ("-Wl,--strip-debug", "-Wl,-z,defs", "-Wl,-z,nodelete", "-Wl,-z,relro", "-Wl,-z,now", "-Wl,-Bsymbolic")


def proxy_name(kind: str) -> str:
    """Return the file name of the proxy (see `limiter.interpose`) for one of NVIDIA's libraries."""
    return f"libvgpushare-{kind}.so"


def proxy_loader_name(kind: str) -> str:
    """Return the file name of the library that loads a proxy under both of its names."""
    return f"libvgpushare-{kind}-names.so"


def outputs(folder: Path = _OUTPUT) -> list[Path]:
    """Return every file that a build creates."""
    proxies = [folder / name(kind) for kind in PROXIES.values() for name in (proxy_name, proxy_loader_name)]
    return [folder / LIBRARY, *proxies, folder / ARBITER]


def is_stale(folder: Path = _OUTPUT) -> bool:
    """Whether a file of the build is missing, or older than the sources."""
    made = [path.stat().st_mtime for path in outputs(folder) if path.is_file()]
    newest = max(path.stat().st_mtime for path in (*c_files(), _EXPORTS, *Path(__file__).parent.glob("*.py")))
    return len(made) < len(outputs(folder)) or min(made) < newest


def ensure() -> None:
    """Build for this machine's architecture, unless the last build is up to date."""
    if is_stale():
        build(platform.machine())


def flags() -> list[str]:
    """Return the flags with which the limiter's C files are compiled.

    The library's headers are named by their path below `src`, the arbiter's by their path below `limiter`.
    """
    return [*toolchain.flags(), f"-I{SOURCES}", f"-I{SOURCES.parent}"]


def build(architecture: str, folder: Path = _OUTPUT) -> None:
    """Compile the library, its proxies and the arbiter into `folder`, and check them."""
    exports = f"-Wl,--version-script={_EXPORTS}"
    options = [*_COMPILE, "-shared", f"-Wl,-soname,{LIBRARY}", exports, *_LINK]
    libraries = ["-ldl", "-lpthread"]
    run(
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
    _build_arbiter(architecture, folder)
    _check(folder)


def library_sources() -> list[Path]:
    """Return the library's C files."""
    return sorted(SOURCES.rglob("*.c"))


def arbiter_sources() -> list[Path]:
    """Return the arbiter's C files."""
    return [*sorted(_ARBITER_SOURCES.rglob("*.c")), *sorted(_SHARED_WITH_ARBITER.glob("*.c"))]


def _build_arbiter(architecture: str, folder: Path) -> None:
    command = [*compiler(architecture), *flags(), "-O2", "-g0", *_LINK_ARBITER, *map(str, arbiter_sources())]
    run([*command, "-o", str(folder / ARBITER)])


def _check(folder: Path) -> None:
    from limiter.build import elf_rules  # noqa: PLC0415 - needs pyelftools; machines that run what is compiled lack it

    elf_rules.check_library(folder / LIBRARY)
    elf_rules.check_program(folder / ARBITER)


def _build_proxy(architecture: str, soname: str, kind: str, folder: Path) -> None:
    """Link the two libraries without code that `limiter.interpose` loads.

    The proxy has NVIDIA's soname, and depends on our library first and the real one second. The other library needs
    the proxy twice, by its soname and by the name without a version, so that the loader knows it by both.
    """
    with tempfile.TemporaryDirectory() as scratch:
        real = link_empty(architecture, Path(scratch) / f"libvgpu-real-{kind}.so")
        proxy = link_empty(architecture, folder / proxy_name(kind), soname, [folder / LIBRARY, real])
        bare = link_empty(architecture, Path(scratch) / soname.removesuffix(".1"))
        link_empty(architecture, folder / proxy_loader_name(kind), None, [proxy, bare])


def c_files() -> list[Path]:
    """Return every C file and header of the library and the arbiter."""
    return [path for folder in (SOURCES, _ARBITER_SOURCES) for path in sorted(folder.rglob("*.[ch]"))]
