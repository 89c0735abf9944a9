"""The list of NVIDIA's functions agrees with the headers and does not contradict itself."""

import platform
from pathlib import Path

import pytest

from limiter.build import check, function_list, headers, toolchain
from limiter.build.function_list import FunctionKind, HookStatus
from tests.limiter.conftest import SOURCES


def declared(folder: str) -> set[str]:
    return headers.declared(folder, toolchain.compiler(platform.machine()))


@pytest.mark.heavy
def test_the_list_names_exactly_the_functions_of_the_headers() -> None:
    check.check_list(function_list.read())


@pytest.mark.heavy
def test_a_function_missing_from_the_list_fails_the_build() -> None:
    listed = set(function_list.read()) - {"cuMemAllocPitch", "nvmlDeviceGetSerial"}
    with pytest.raises(SystemExit) as stop:
        check.check_list(listed)
    for folder in headers.FOLDERS:
        missing = {"cuMemAllocPitch", "nvmlDeviceGetSerial"} & declared(folder)
        assert f"nvidia/{folder} declares what functions.h lacks: {sorted(missing)}" in str(stop.value)


@pytest.mark.heavy
def test_a_listed_function_without_a_declaration_fails_the_build() -> None:
    with pytest.raises(SystemExit, match=r"functions.h lists what no header declares: \['cuMemAlloc_v9'\]"):
        check.check_list({*function_list.read(), "cuMemAlloc_v9"})


@pytest.mark.heavy
@pytest.mark.parametrize(
    "name",
    [
        "cuMemAlloc",  # the 32-bit form, behind __CUDA_API_VERSION_INTERNAL
        "cuMemAlloc_v2",
        "cuMemAllocAsync_ptsz",
        "cuMemcpyHtoD_v2_ptds",
        "cuGLMapBufferObject_v2_ptds",  # in the header as a macro only
        "cuProfilerStart",  # as a typedef only
    ],
)
def test_every_form_of_a_function_is_found_in_the_headers(name: str) -> None:
    assert all(name in declared(folder) for folder in ("cu13/include", "cuda_runtime/include"))


def test_both_versions_of_the_headers_are_installed() -> None:
    cuda = {name: (headers.folder(name) / "cuda.h") for name in headers.FOLDERS[:2]}
    versions = {name: text.read_text().split("#define CUDA_VERSION ", 1)[1].split()[0] for name, text in cuda.items()}
    assert {name: int(version) // 1000 for name, version in versions.items()} == {
        "cu13/include": 13,
        "cuda_runtime/include": 12,
    }


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("HOOKED(cuA, FREES)\nPASSED(cuA, READS)\n", "cuA is listed twice"),
        ("PASSED(cuA, LAUNCHES)\n", "cuA is LAUNCHES, so it cannot be PASSED: write UNWRAPPED"),
        ("PASSED(cuA, WHATEVER)\n", "'WHATEVER' is not a valid FunctionKind"),
    ],
)
def test_a_list_that_contradicts_itself_is_refused(tmp_path: Path, lines: str, message: str) -> None:
    (tmp_path / "functions_x.h").write_text(lines)
    with pytest.raises(ValueError, match=message):
        function_list.read(tmp_path)


def test_every_keyword_of_the_list_is_documented() -> None:
    explained = (SOURCES / "driver" / "functions.h").read_text().split("*/", 1)[0]
    assert [word for word in (*HookStatus, *FunctionKind) if word not in explained] == []
