"""What is checked of an image's contents, and what its bill of materials says."""

import dataclasses
import hashlib
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from images import debian, needed_libraries, page_libraries, sbom, wheels
from images.build import PROJECT
from release.identity import BuildIdentity

SOURCE = BuildIdentity("0.2.0", time=datetime(2026, 11, 23, tzinfo=UTC))
MSGSPEC = wheels.Distribution("msgspec", "0.22.0", "BSD-3-Clause", "msgspec-0.22.0-cp311.whl", "ab" * 32)
LIBC = debian.Package("amd64", "libc6", "2.36-9+deb12u14", "0f" * 32)


def test_a_library_that_nothing_provides_is_named_with_its_user() -> None:
    needed = {"usr/bin/python3.11": {"libc.so.6", "libz.so.1"}, "_ssl.so": {"libssl.so.3", "libc.so.6"}}
    assert needed_libraries.missing(needed, ["libc.so.6", "libz.so.1"]) == {"libssl.so.3": "_ssl.so"}
    assert not needed_libraries.missing(needed, ["libc.so.6", "libz.so.1", "libssl.so.3"])


@pytest.mark.parametrize(
    ("path", "left_out"),
    [
        ("bin", True),
        ("msgspec-0.22.0.dist-info/RECORD", True),
        ("vgpushare-0.1.0.dist-info/direct_url.json", True),
        ("numpy/linalg/tests", True),
        ("msgspec-0.22.0.dist-info/METADATA", False),
        ("numpy/linalg/_linalg.py", False),
        ("limiter/libvgpushare.so", False),
        ("webhook/validate.py", False),
    ],
)
def test_what_differs_from_build_to_build_is_left_out(path: str, left_out: bool) -> None:
    assert wheels.is_left_out(path) == left_out


def test_a_bill_of_materials_names_packages_by_their_urls() -> None:
    text = sbom.document("vgpushare-webhook", SOURCE, [LIBC], {"libc6": "LGPL-2.1"}, [MSGSPEC])
    bill = json.loads(text)
    assert (bill["bomFormat"], bill["metadata"]["component"]["name"]) == ("CycloneDX", "vgpushare-webhook")
    assert {component["purl"] for component in bill["components"]} == {
        "pkg:deb/debian/libc6@2.36-9%2Bdeb12u14?arch=amd64&distro=debian-12",
        "pkg:pypi/msgspec@0.22.0",
    }
    assert text == sbom.document("vgpushare-webhook", SOURCE, [LIBC], {"libc6": "LGPL-2.1"}, [MSGSPEC])
    other = json.loads(
        sbom.document("vgpushare-webhook", SOURCE, [LIBC], {}, [dataclasses.replace(MSGSPEC, version="0.23.0")])
    )
    (libc, msgspec) = sorted(bill["components"], key=lambda component: str(component["name"]))
    assert (libc["hashes"], msgspec["hashes"]) == (
        [{"alg": "SHA-256", "content": "0f" * 32}], [{"alg": "SHA-256", "content": "ab" * 32}],
    )  # fmt: skip
    assert [component["licenses"][0]["license"].get("id") for component in (libc, msgspec)] == [
        "LGPL-2.1",
        "BSD-3-Clause",
    ]
    assert other["serialNumber"] != bill["serialNumber"]


def test_libraries_of_the_dashboard_are_materials_too() -> None:
    (uplot,) = page_libraries.served(PROJECT)
    (component,) = json.loads(sbom.document("vgpushare-extender", SOURCE, [], {}, [], [uplot]))["components"]
    assert (component["purl"], component["licenses"][0]["license"]["id"]) == (f"pkg:npm/uplot@{uplot.version}", "MIT")
    program = PROJECT / page_libraries.FOLDER / "uplot" / "uPlot.esm.js"
    assert component["hashes"][0]["content"] == hashlib.sha256(program.read_bytes()).hexdigest()


def test_an_image_without_the_dashboard_has_none_of_its_libraries(tmp_path: Path) -> None:
    assert page_libraries.served(tmp_path) == []


def test_our_own_wheel_has_its_hash(tmp_path: Path) -> None:
    described = tmp_path / "tree" / wheels.SITE / "vgpushare-0.2.0.dist-info"
    described.mkdir(parents=True)
    (described / "METADATA").write_text("Metadata-Version: 2.4\nName: vgpushare\nVersion: 0.2.0\n")
    wheel = tmp_path / "vgpushare-0.2.0-py3-none-any.whl"
    wheel.write_bytes(b"wheel")
    found = wheels.own(tmp_path / "tree", wheel)
    assert (found.name, found.file, found.sha256) == ("vgpushare", wheel.name, hashlib.sha256(b"wheel").hexdigest())
    (component,) = json.loads(sbom.document("vgpushare-webhook", SOURCE, [], {}, [found]))["components"]
    assert component["licenses"][0]["license"]["id"] == sbom.LICENCE
