"""Every driver function by every way to find it, under the limiter and natively, compared in one process.

`python -m tests.limiter.preload.symbols` prints one line, after one for each difference, and exits 1 where there are
any. It limits itself unless the library is preloaded already. It needs NVIDIA's driver, or the simulated one, and
of our environment pyelftools only.
"""

import ctypes
import itertools
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import limiter
from limiter import LIBRARY, interpose
from limiter.build import elf, function_list
from limiter.build.function_list import HookStatus

# Every version at which a function of cuda.h changed; cuGetProcAddress is asked for it and for the one before.
VERSIONS: Final = (
    *(2000, 2010, 2020, 2030, 3000, 3010, 3020, 4000, 4010, 4020, 5000, 5050, 6000, 6050, 7000, 8000, 9000, 9020),
    *(10000, 10010, 10020, 11000, 11010, 11020, 11030, 11040, 11060, 11070),
    *(12000, 12010, 12020, 12030, 12040, 12050, 12060, 12080, 12090, 13000, 13010, 13020, 13030, 13040, 13050),
)
_ASKED: Final = sorted({version + around for version in VERSIONS for around in (-1, 0)})
_FLAGS: Final = (0, 1, 2)  # default, legacy stream, per-thread stream
_ODD: Final = ((0, 0), (99000, 0), (13000, 3), (13000, 8))  # versions and flags that do not exist
_UNTOUCHED: Final = 0xDEAD
_SUFFIX: Final = re.compile(r"(_v\d)?(_ptds|_ptsz)?$")

Question = tuple[bytes, int, int]  # name, version and flags
Answer = tuple[int, int | None, int]  # result, address and status
_ASK_V2: Final = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_uint64, ctypes.c_void_p
)
_ASK: Final = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_uint64)


@dataclass(slots=True)
class Library:
    """One of NVIDIA's libraries, as the program sees it and as the real library."""

    seen: ctypes.CDLL
    real: ctypes.CDLL
    shim: ctypes.CDLL
    ours: dict[int | None, set[int | None]] = field(default_factory=dict)  # wrappers by the real function's address
    exchanged: int = 0  # number of results that were one of our wrappers

    def native(self, name: str) -> int | None:
        """Address of the exported function in the real library."""
        return _real_dlsym()(self.real._handle, name.encode()) or None

    def found(self, name: str) -> int | None:
        """Address that the program finds by name."""
        return _address(self.seen, name)

    def hook(self, name: str) -> None:
        """Records which wrapper stands for the real function of a name."""
        if (native := self.native(name)) is not None:
            self.ours.setdefault(native, set()).add(_address(self.shim, name))

    def offers(self, name: str, found: int | None) -> bool:
        """Whether the name is found only because `limiter.preload` put our library in the driver's place."""
        return self.real is not self.seen and found == _address(self.shim, name)

    def agrees(self, native: int | None, found: int | None) -> bool:
        """Whether the address is that of the real function, or of our wrapper if the function has one."""
        self.exchanged += native in self.ours
        return found in self.ours.get(native, {native})


def _address(library: ctypes.CDLL, name: str) -> int | None:
    try:
        return ctypes.cast(library[name], ctypes.c_void_p).value
    except AttributeError:
        return None


def _real_dlsym() -> Callable[[int, bytes], int | None]:
    """The C library's dlsym, which is found by a lookup in the C library itself."""
    lookup = ctypes.CDLL("libc.so.6").dlsym
    lookup.restype = ctypes.c_void_p
    lookup.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
    return lookup


def open_library(soname: str, proxy: str, functions: list[function_list.Function]) -> Library:
    """Opens a library; under `limiter.preload` the real library has the other name."""
    seen = ctypes.CDLL(soname)
    real = ctypes.CDLL(proxy) if interpose.is_loaded(proxy) else seen
    library = Library(seen, real, ctypes.CDLL(str(limiter.library_path())))
    for function in functions:
        if function.status is HookStatus.HOOKED:
            library.hook(function.name)
    return library


def by_name(library: Library, functions: list[function_list.Function]) -> Iterator[str]:
    """Differences of dlsym."""
    for function in functions:
        native, found = library.native(function.name), library.found(function.name)
        if not library.agrees(native, found) and not (native is None and library.offers(function.name, found)):
            yield f"dlsym {function.name}: {found} for {native}"


def _asked(ask: Callable[..., int], name: bytes, version: int, flags: int) -> Answer:
    address, status = ctypes.c_void_p(_UNTOUCHED), ctypes.c_int(-1)
    more = (ctypes.byref(status),) if isinstance(ask, _ASK_V2) else ()
    return ask(name, ctypes.byref(address), version, flags, *more), address.value, status.value


def ask_all(names: set[str]) -> list[Question]:
    """Queries every version and flag. Names with a version suffix are unknown to cuGetProcAddress."""
    bases = {_SUFFIX.sub("", name) for name in names}
    grid = itertools.product(bases, _ASKED, _FLAGS)
    odd = ((name, version, flags) for name in {*names, *bases, "cuNothing", ""} for version, flags in _ODD)
    return [(name.encode(), version, flags) for name, version, flags in (*grid, *odd)]


def by_version(library: Library, questions: list[Question]) -> Iterator[str]:
    """Differences of cuGetProcAddress, in both its forms."""
    for symbol, kind in (("cuGetProcAddress_v2", _ASK_V2), ("cuGetProcAddress", _ASK)):
        native, found = library.native(symbol), library.found(symbol)
        if native is None or found is None:
            yield f"{symbol} is not there"
            continue
        ask_native, ask_found = kind(native), kind(found)
        for question in questions:
            expected, seen = _asked(ask_native, *question), _asked(ask_found, *question)
            if expected[::2] != seen[::2] or not library.agrees(expected[1], seen[1]):
                yield f"{symbol}{question}: {seen} for {expected}"


def unlisted(soname: str, listed: set[str]) -> list[str]:
    """Functions that the real library exports under a CUDA or NVML name, but that are not in the list."""
    lines = [line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines() if "/" in line]
    stem = soname.removesuffix("1")
    path = next(path for path in lines if Path(path).name.startswith(stem) and LIBRARY not in path)
    exported = elf.read(Path(path).resolve().read_bytes()).exports
    return sorted(name for name in exported - listed if re.match(r"cu[A-Z]|nvml[A-Z]", name))


def main() -> int:
    """Compare, print and return the exit status."""
    if not interpose.is_loaded(LIBRARY):
        limiter.preload(memory="1GiB")
    functions = list(function_list.read().values())
    cuda = [function for function in functions if function.name.startswith("cu")]
    nvml = [function for function in functions if function.name.startswith("nvml")]
    driver = open_library("libcuda.so.1", "libvgpu-real-cuda.so", cuda)
    management = open_library("libnvidia-ml.so.1", "libvgpu-real-nvml.so", nvml)
    driver.seen.cuInit(0)
    questions = ask_all({function.name for function in cuda})
    differences = [*by_name(driver, cuda), *by_name(management, nvml), *by_version(driver, questions)]
    more = unlisted("libcuda.so.1", {f.name for f in cuda})
    sys.stdout.writelines(f"{line}\n" for line in differences)
    sys.stdout.write(
        f"{len(functions)} functions by name, {2 * len(questions)} questions to cuGetProcAddress: "
        f"{driver.exchanged} answered with ours, {len(differences)} differ; "
        f"the driver exports {len(more)} that are not listed: {' '.join(more)}\n"
    )
    return 1 if differences or not driver.exchanged else 0


if __name__ == "__main__":
    raise SystemExit(main())
