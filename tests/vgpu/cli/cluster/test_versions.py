"""`vgpu version --server`: what each part runs, and whether that is this program's version."""

from typing import Any

import pytest

import vgpu
from tests.vgpu.cli.cluster.conftest import Server, run
from vgpu.domain import build_version

OWN = vgpu.__version__
OWN_TAG = build_version.image_tag(OWN)


def installed(webhook: str = OWN_TAG, plugins: tuple[str, ...] = (OWN,), admin: str = OWN) -> dict[str, Any]:
    return {
        "admin": admin,
        "extender": admin,
        "devicePlugins": [
            {"version": version, "nodes": [f"node-{n}-{number}" for number in range(5)]}
            for n, version in enumerate(plugins)
        ],
        "images": [
            {"container": "scheduler", "image": "registry.k8s.io/kube-scheduler:v1.36.3", "tag": "v1.36.3", "pods": 2},
            {
                "container": "webhook",
                "image": f"r.example.com:5000/vgpushare-webhook:{webhook}",
                "tag": webhook,
                "pods": 2,
            },
        ],
    }


def asked(server: Server, found: dict[str, Any], *options: str) -> tuple[int, str]:
    server.answers["GET /api/v1/versions"] = (200, found)
    return run("version", "--server", *options, VGPU_SERVER=server.url)


def test_one_version_everywhere(server: Server) -> None:
    code, output = asked(server, installed())
    assert (code, "skew" in output) == (0, False)
    assert [line.split()[:2] for line in output.splitlines()[1:]] == [
        ["vgpu", OWN], ["admin", OWN], ["extender", OWN], ["deviceplugin", OWN], ["webhook", OWN_TAG],
    ]  # fmt: skip
    assert "5 nodes: node-0-0, node-0-1, node-0-2 and 2 more" in output


@pytest.mark.parametrize("form", [("--server", "{}"), ("--server={}",), ("--server", "-o", "table", "{}")])
def test_the_server_may_be_a_url_as_for_other_commands(server: Server, form: tuple[str, ...]) -> None:
    server.answers["GET /api/v1/versions"] = (200, installed())
    code, output = run("version", *(part.format(server.url) for part in form))
    assert (code, "extender" in output) == (0, True), output


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (installed(webhook="0.1.0"), "webhook 0.1.0"),
        (installed(plugins=("0.1.0", OWN, "0.1.1")), "deviceplugin 0.1.0, 0.1.1"),
        (installed(admin="0.1.0"), "admin 0.1.0; extender 0.1.0"),
    ],
)
def test_parts_of_another_version_are_named(server: Server, found: dict[str, Any], words: str) -> None:
    code, output = asked(server, found)
    assert code == 1
    assert output.splitlines()[-1] == f"vgpu version: version skew: this program is {OWN}; {words}"


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ("0.2.0.dev0", "0.2.0.dev20261130005320+g1a2b3c4d5e6f", True),  # a program in a checkout, and images of it
        ("0.2.0.dev0", "0.2.0-dev.20261130005320.g1a2b3c4d5e6f.dabababab", True),
        ("0.2.0.dev0", "0.2.0", False),
        ("0.2.0.dev0", "0.3.0.dev20261130005320+g1a2b3c4d5e6f", False),
        ("0.2.0.dev0", "another-version", False),
        ("0.2.0.dev20261130005320+g1a", "0.2.0-dev.20261130005320.g1a", True),
        ("0.2.0.dev20261130005320+g1a", "0.2.0-dev.20261130005320.g1b", False),
    ],
)
def test_a_program_in_a_checkout_is_of_any_build_before_its_release(one: str, other: str, *, is_same: bool) -> None:
    assert build_version.is_same_build(one, other) is build_version.is_same_build(other, one) is is_same


def test_a_part_in_a_checkout_has_no_version_and_its_row_says_so(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    built = "0.2.0.dev20261130005320+g1a2b3c4d5e6f"
    monkeypatch.setattr(vgpu, "__version__", built)
    found = installed(webhook=build_version.image_tag(built), plugins=(built, "0.2.0.dev0"), admin="0.2.0.dev0")
    code, output = asked(server, found)
    noted = [line.split()[:2] for line in output.splitlines() if "run from a checkout: version unknown" in line]
    assert (code, noted) == (0, [[part, "0.2.0.dev0"] for part in ("admin", "extender", "deviceplugin")])


def test_a_digest_says_nothing_about_a_version(server: Server) -> None:
    code, output = asked(server, installed(webhook=f"sha256:{'0' * 64}"))
    assert (code, "skew" in output) == (0, False)


def test_programs_get_the_rows(server: Server) -> None:
    code, output = asked(server, installed(), "-o", "csv")
    assert code == 0
    assert output.splitlines()[0] == "PART,VERSION,WHERE"


def test_without_the_option_nothing_is_asked(server: Server) -> None:
    assert run("version", VGPU_SERVER=server.url) == (0, f"vgpushare {OWN}\n")
    assert not server.requests
