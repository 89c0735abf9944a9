"""A made-up root of a node with a driver: libraries of headers alone."""

import struct
from pathlib import Path
from typing import Final

VERSION: Final = "580.95.05"
X86_64: Final = 62
AARCH64: Final = 183
_ADDRESS: Final = 0x10000  # where the loader would put the file: offsets and addresses differ, as in real files


def elf(soname: str, machine: int = X86_64) -> bytes:
    """Return a shared library with nothing but its name."""
    strings = b"\0" + soname.encode() + b"\0"
    header_size, part_size = 64, 56
    dynamic_at = header_size + 2 * part_size
    strings_at = dynamic_at + 3 * 16
    dynamic = struct.pack("<qQqQqQ", 5, _ADDRESS + strings_at, 14, 1, 0, 0)
    size = strings_at + len(strings)
    header = struct.pack(
        "<4sBBB9xHHIQQQIHHHHHH", b"\x7fELF", 2, 1, 1, 3, machine, 1, 0, header_size, 0, 0, 64, part_size, 2, 0, 0, 0
    )
    loaded = struct.pack("<IIQQQQQQ", 1, 4, 0, _ADDRESS, _ADDRESS, size, size, 4096)
    part = struct.pack("<IIQQQQQQ", 2, 4, dynamic_at, _ADDRESS + dynamic_at, 0, len(dynamic), len(dynamic), 8)
    return header + loaded + part + dynamic + strings


class NodeRoot:
    """Writes files below a folder."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def seen(self, path: str) -> Path:
        found = self.path / path.lstrip("/")
        found.parent.mkdir(parents=True, exist_ok=True)
        return found

    def library(self, path: str, soname: str, machine: int = X86_64) -> None:
        self.seen(path).write_bytes(elf(soname, machine))

    def link(self, path: str, target: str) -> None:
        self.seen(path).symlink_to(target)

    def program(self, path: str, text: str = "#!/bin/sh\n") -> None:
        self.seen(path).write_text(text)
        self.seen(path).chmod(0o755)

    def driver(self, folder: str = "/usr/lib/x86_64-linux-gnu", version: str = VERSION) -> None:
        """Put a driver's most needed libraries in a folder, with the links of its installer."""
        for stem, number in (("libcuda", "1"), ("libnvidia-ml", "1"), ("libnvidia-nvvm", "4")):
            self.library(f"{folder}/{stem}.so.{version}", f"{stem}.so.{number}")
            self.link(f"{folder}/{stem}.so.{number}", f"{stem}.so.{version}")
        self.link(f"{folder}/libcuda.so", "libcuda.so.1")
        self.library(f"{folder}/libnvidia-gpucomp.so.{version}", f"libnvidia-gpucomp.so.{version}")
        self.library(f"{folder}/libnvidia-glcore.so.{version}", f"libnvidia-glcore.so.{version}")
