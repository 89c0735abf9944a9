"""limiter/arbitration.py has the values and the layouts of the header arbitration.h."""

import ctypes
import json
import platform
import struct
import subprocess
from pathlib import Path

import pytest

import limiter
from limiter import arbitration
from limiter.build import toolchain

HEADER = next(Path(limiter.__file__).parent.rglob("arbitration.h"))
PROGRAM = """
#include <stdio.h>
#include "{header}"
#define NUMBER(value) printf("\\"%s\\": %llu,", #value, (unsigned long long)(value))
int main(void) {{
    printf("{{");
    {numbers}
    printf("\\"magic\\": \\"%s\\"}}", ARBITRATION_MAGIC);
}}
"""


@pytest.fixture(scope="module")
def header(tmp_path_factory: pytest.TempPathFactory) -> dict[str, int | str]:
    """The header's values by their expressions in C."""
    folder = tmp_path_factory.mktemp("layout")
    numbers = "".join(f"NUMBER({expression});" for expression in expected())
    (folder / "layout.c").write_text(PROGRAM.format(header=HEADER, numbers=numbers))
    command = [
        *toolchain.compiler(platform.machine()),
        "-std=gnu11",
        str(folder / "layout.c"),
        "-o",
        str(folder / "layout"),
    ]
    subprocess.run(command, check=True)
    done = subprocess.run([str(folder / "layout")], check=True, capture_output=True, text=True)
    values: dict[str, int | str] = json.loads(done.stdout)
    return values


def expected() -> dict[str, int]:
    """The module's values by the same expressions."""
    constants = (
        "VERSION",
        "JOINS",
        "IN_SPACE",
        "WANT",
        "DONE",
        "DONE_AWAITED",
        "ACCEPTED",
        "OTHER_VERSION",
        "NO_SUCH_CARD",
        "TOO_MANY",
    )
    sizes = {"hello": arbitration.HELLO.size, "welcome": arbitration.WELCOME.size, "message": arbitration.MESSAGE.size}
    fields = {}
    for name, _ in arbitration.ClientPage._fields_:
        field = getattr(arbitration.ClientPage, name)
        fields[f"offsetof(struct arbitration_page, {name})"] = field.offset
        fields[f"sizeof(((struct arbitration_page *)0)->{name})"] = field.size
    return {
        **{f"ARBITRATION_{name}": getattr(arbitration, name) for name in constants},
        **{f"sizeof(struct arbitration_{name})": size for name, size in sizes.items()},
        "sizeof(struct arbitration_page)": ctypes.sizeof(arbitration.ClientPage),
        "offsetof(struct arbitration_hello, uuid)": struct.calcsize("<8sII"),
        "offsetof(struct arbitration_welcome, result)": struct.calcsize("<8sI"),
        "offsetof(struct arbitration_message, turn)": struct.calcsize("<I"),
        "offsetof(struct arbitration_message, ns)": struct.calcsize("<II"),
        **fields,
    }


def test_values_sizes_and_offsets_are_those_of_the_header(header: dict[str, int | str]) -> None:
    assert header == {**expected(), "magic": arbitration.MAGIC.decode()}
