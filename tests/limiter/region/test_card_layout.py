"""vgpu.domain.formats.region reads each field of a card's row from the place that `struct region_card` gives it."""

import platform
import subprocess
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

import limiter
from limiter.build import toolchain
from vgpu.domain.formats import limits, region
from vgpu.domain.formats.region import CardUse, UsageWindow

SOURCES = Path(limiter.__file__).parent / "src"
IN_C = {
    "used_bytes": "used",
    "limit_bytes": "limit",
    "peak_bytes": "peak",
    "refusals": "refusals",
    "context_bytes": "context_bytes",
    "orphaned_bytes": "orphaned",
    "overdraft_used_ns": "overdraft_used",
    "overdraft_at_ns": "overdraft_at",
    "spilled_bytes": "spilled",
    "spills": "spills",
    "busy_until_ns": "busy_until",
    "gpu_ns": "gpu_ns",
    "throttled_ns": "throttled_ns",
    "delayed_launches": "delayed_launches",
    "longest_wait_us": "longest_wait_us",
}
WINDOWS = ("second", "ten_seconds")
OTHERS = ("gpu", *WINDOWS, "activity")

# A region with one card, in which every field has another value.
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
    struct region_card *card = &region.cards[0];
    {assignments}
    return fwrite(&region, sizeof region, 1, stdout) == 1 ? 0 : 1;
}}
"""


def expected() -> CardUse:
    values: dict[str, Any] = {name: 100 + place for place, name in enumerate(IN_C)}
    values |= {name: UsageWindow(*range(200 + 4 * place, 204 + 4 * place)) for place, name in enumerate(WINDOWS)}
    return CardUse(limits.uuid_text(bytes([7]) + bytes(15)), **values)


def assignments() -> str:
    wanted = expected()
    lines = [f"card->{in_c} = {getattr(wanted, name)};" for name, in_c in IN_C.items()]
    for place, name in enumerate(WINDOWS):
        window = getattr(wanted, name)
        values = f"{window.begun_ns}, {window.gpu_ns}, {window.permille}, {window.took_ms}"
        lines.append(f"card->windows[{place}] = (struct region_window){{{values}}};")
    return "\n    ".join(lines)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    folder = tmp_path_factory.mktemp("region")
    (folder / "region.c").write_text(PROGRAM.format(assignments=assignments()))
    command = [*toolchain.compiler(platform.machine()), *toolchain.flags(), "-I", str(SOURCES)]
    subprocess.run([*command, str(folder / "region.c"), "-o", str(folder / "region")], check=True)
    return subprocess.run([str(folder / "region")], check=True, capture_output=True).stdout


def test_every_field_is_read_from_its_place(written: bytes) -> None:
    assert {field.name for field in fields(CardUse)} == {*IN_C, *OTHERS}
    assert region.decode(written).cards == (expected(),)
