"""vgpu.domain.formats.region reads each counter of `struct region_activity` from the place that the header gives it."""

import platform
import subprocess
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

import limiter
from limiter.build import toolchain
from vgpu.domain.formats import limits, region
from vgpu.domain.formats.region import Activity, Wait

SOURCES = Path(limiter.__file__).parent / "src"
WAITS = {
    "turn": "REGION_WAIT_TURN",
    "share": "REGION_WAIT_SHARE",
    "drain": "REGION_WAIT_DRAIN",
    "queued": "REGION_WAIT_QUEUED",
}
IN_C = {"last_launch_at_ns": "last_launch_at", "last_kernel_end_at_ns": "last_kernel_end_at"}  # others have one name
COUNTERS = [field.name for field in fields(Activity) if field.name not in WAITS]

# A region with one card, in which every counter has another value.
PROGRAM = """
#include "common/region_layout.h"

#include <stdio.h>

static struct region region = {{.header.magic = REGION_MAGIC,
                               .header.version = REGION_VERSION,
                               .header.size = sizeof region,
                               .header.slot_count = REGION_SLOTS,
                               .header.card_count = REGION_CARDS,
                               .cards[0] = {{.uuid = {{7}}, .is_valid = 1}}}};

int main(void) {{
    struct region_activity *activity = &region.activity[0];
    {assignments}
    return fwrite(&region, sizeof region, 1, stdout) == 1 ? 0 : 1;
}}
"""


def expected() -> Activity:
    values: dict[str, Any] = {name: Wait(100 + 2 * place, 101 + 2 * place) for place, name in enumerate(WAITS)}
    values |= {name: 1000 + place for place, name in enumerate(COUNTERS)}
    return Activity(**values)


def assignments() -> str:
    wanted = expected()
    waits = [
        f"activity->waits[{cause}].ns = {getattr(wanted, name).ns}; "
        f"activity->waits[{cause}].count = {getattr(wanted, name).count};"
        for name, cause in WAITS.items()
    ]
    return "\n    ".join(
        [*waits, *(f"activity->{IN_C.get(name, name)} = {getattr(wanted, name)};" for name in COUNTERS)]
    )


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    folder = tmp_path_factory.mktemp("region")
    (folder / "region.c").write_text(PROGRAM.format(assignments=assignments()))
    command = [*toolchain.compiler(platform.machine()), *toolchain.flags(), "-I", str(SOURCES)]
    subprocess.run([*command, str(folder / "region.c"), "-o", str(folder / "region")], check=True)
    return subprocess.run([str(folder / "region")], check=True, capture_output=True).stdout


def test_every_counter_is_read_from_its_place(written: bytes) -> None:
    (card,) = region.decode(written).cards
    assert card.gpu == limits.uuid_text(bytes([7]) + bytes(15))
    assert card.activity == expected()
