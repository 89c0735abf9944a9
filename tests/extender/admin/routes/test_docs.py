"""docs/admin.md names every path, every setting of the admin REST, and every command about the cluster."""

import re
from pathlib import Path

from fastapi.routing import APIRoute

from extender.admin.app import ROUTES
from extender.settings import ExtenderSettings
from tests.vgpu.cli.cluster.conftest import run

DOCS = Path(__file__).parents[4] / "docs"
PAGE = (DOCS / "admin.md").read_text()


def test_every_path_is_documented_and_exists() -> None:
    made = {route.path for module in ROUTES for route in module.router.routes if isinstance(route, APIRoute)}
    rows = [line for line in PAGE.splitlines() if re.match(r"\| `(GET|POST) ", line)]
    written = {path for line in rows for path in re.findall(r"`(?:GET |POST )?(/[^`]*)`", line.split("|")[1])}
    assert written == made


def test_every_setting_is_documented_and_exists() -> None:
    made = {name.replace("_", "-") for name in ExtenderSettings.model_fields if name.startswith("admin_")}
    assert set(re.findall(r"--(admin-[a-z-]+)", PAGE)) == made


def test_every_command_is_documented() -> None:
    listed = re.findall(r"^│ (\w+) ", run("--help")[1], re.MULTILINE)
    text = PAGE + "".join((DOCS / name).read_text() for name in ("guide.md", "workloads.md"))
    assert len(listed) > 10
    assert [name for name in listed if f"vgpu {name}" not in text and name != "version"] == []
