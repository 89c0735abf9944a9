"""A region that a C program writes through the limiter's header, to compare with what Python reads."""

import platform
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import limiter
from limiter.build import toolchain
from vgpu.domain.formats import limits

SOURCES: Final = Path(limiter.__file__).parent / "src"
GPU: Final = limits.uuid_text(bytes([7]) + bytes(15))  # of the only card

_PROGRAM: Final = """
#include "common/region_layout.h"

#include <stdio.h>

static struct region region = {{.header.magic = REGION_MAGIC,
                               .header.version = REGION_VERSION,
                               .header.size = sizeof region,
                               .header.slot_count = REGION_SLOTS,
                               .header.card_count = REGION_CARDS,
                               .cards[0] = {{.uuid = {{7}}, .is_valid = 1}}}};

int main(void) {{
    {assignments}
    return fwrite(&region, sizeof region, 1, stdout) == 1 ? 0 : 1;
}}
"""


def written(folder: Path, assignments: Iterable[str]) -> bytes:
    """Return a region with one card after C statements that write into `region`; the program is built in `folder`."""
    (folder / "region.c").write_text(_PROGRAM.format(assignments="\n    ".join(assignments)))
    command = [*toolchain.compiler(platform.machine()), *toolchain.flags(), "-I", str(SOURCES)]
    subprocess.run([*command, str(folder / "region.c"), "-o", str(folder / "region")], check=True)
    return subprocess.run([str(folder / "region")], check=True, capture_output=True).stdout
