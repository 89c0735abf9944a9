"""clang-format and clang-tidy over C files, with one configuration for every C tree: `.clang-format`, `.clang-tidy`.

Both tools are wheels of this environment. clang-tidy runs in `JOBS` processes at a time.
"""

import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import util
from pathlib import Path

JOBS = 2

_ROOT = Path(__file__).parents[2]
_LIBC_HEADERS = ("x86-linux-gnu", "generic-glibc", "x86-linux-any", "any-linux-any")  # as zig cc -v lists them
_GLIBC_MINOR = 17


def check_format(files: Sequence[Path]) -> None:
    """Stop the program where clang-format would change a file; it prints each place."""
    _run(["clang-format", "--dry-run", "-Werror", *map(str, files)])


def format_in_place(files: Sequence[Path]) -> None:
    """Format the files."""
    _run(["clang-format", "-i", *map(str, files)])


def tidy(sources: Sequence[Path], flags: Sequence[str]) -> None:
    """Stop the program, with all that clang-tidy prints, where it finds a fault in the sources.

    The compiler's flags are followed by those that show the headers of glibc 2.17, which the machine may not have.
    """
    config = f"--config-file={_ROOT / '.clang-tidy'}"
    parts = [part for number in range(JOBS) if (part := sources[number::JOBS])]
    commands = [["clang-tidy", "--quiet", config, *map(str, part), "--", *flags, *_libc_headers()] for part in parts]
    with ThreadPoolExecutor(JOBS) as pool:
        done = list(pool.map(_run_quietly, commands))
    if faults := [process.stdout + process.stderr for process in done if process.returncode]:
        raise SystemExit("\n".join(faults))


def _libc_headers() -> list[str]:
    zig = util.find_spec("ziglang")
    root = Path(zig.origin).parent if zig and zig.origin else Path()
    folders = [root / "lib" / "libc" / "include" / name for name in _LIBC_HEADERS]
    options = [option for folder in folders for option in ("-isystem", str(folder))]
    return ["--target=x86_64-linux-gnu", "-nostdlibinc", f"-D__GLIBC_MINOR__={_GLIBC_MINOR}", *options]


def _tool(command: Sequence[str]) -> list[str]:
    """Return the command with the tool's path beside this environment's Python, where the wheels install it."""
    beside = Path(sys.executable).parent / command[0]
    return [str(beside) if beside.is_file() else command[0], *command[1:]]


def _run(command: Sequence[str]) -> None:
    done = subprocess.run(_tool(command), check=False)
    if done.returncode:
        raise SystemExit(done.returncode)


def _run_quietly(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(_tool(command), capture_output=True, text=True, check=False)
