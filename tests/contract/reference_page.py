"""`python -m tests.contract.reference_page`: writes docs/reference.md from the settings and paths of the code."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fastapi.routing import APIRoute
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined
from pydantic_settings import BaseSettings

from deviceplugin.settings import PluginSettings
from deviceplugin.space.settings import SpaceSettings
from extender.admin import app
from extender.settings import ExtenderSettings
from tests.contract.repository import ROOT
from vgpu.simulator.settings import SimulatorSettings
from webhook.settings import WebhookSettings

PAGE = ROOT / "docs" / "reference.md"
PARTS: dict[str, type[BaseSettings]] = {
    "Extender": ExtenderSettings,
    "Device plugin": PluginSettings,
    "Supervisor of MPS daemons": SpaceSettings,
    "Webhook": WebhookSettings,
    "Simulator (`make run`)": SimulatorSettings,
}
HEAD = """# Settings and paths

Every setting of each part, and every path of the admin REST. A setting is given on the command line, or as the
environment variable; a part ends at once on a name that does not exist. [metrics.md](metrics.md) lists the metrics, and
[admin.md](admin.md) says what the commands and the REST are for. This page is written by
`python -m tests.contract.reference_page`.
"""


def page() -> str:
    """The text of the page."""
    parts = [_settings(name, kind) for name, kind in PARTS.items()]
    return "\n".join([HEAD, *parts, _paths()])


def _settings(name: str, kind: type[BaseSettings]) -> str:
    prefix = kind.model_config.get("env_prefix", "")
    rows = [_row(field, info, prefix) for field, info in kind.model_fields.items()]
    command = kind.model_config.get("cli_prog_name")
    head = f"## {name}\n\n`{command}`\n\n| setting | environment | default | meaning |\n|---|---|---|---|"
    return "\n".join([head, *rows, ""])


def _row(field: str, info: FieldInfo, prefix: str) -> str:
    flag, variable = f"--{field.replace('_', '-')}", f"{prefix}{field}".upper()
    return f"| `{flag}` | `{variable}` | {_default(info)} | {_cell(info.description or '')} |"


def _default(info: FieldInfo) -> str:
    if info.default is PydanticUndefined:
        return "none: required" if info.default_factory is None else ""
    if info.default in (None, ""):
        return ""
    value: Any = info.default
    text = value.as_posix() if isinstance(value, Path) else str(value)
    return f"`{text}`"


def _paths() -> str:
    rows = [f"| `{method} {app.PREFIX}{path}` | {_cell(text)} |" for method, path, text in sorted(_operations())]
    return "\n".join(["## The admin REST\n\n| path | answer |\n|---|---|", *rows, ""])


def _operations() -> Iterator[tuple[str, str, str]]:
    """Yield the method, the path and the first sentence of each operation."""
    for routes in app.ROUTES:
        for route in routes.router.routes:
            assert isinstance(route, APIRoute)
            for method in route.methods or ():
                yield method, route.path, (route.endpoint.__doc__ or "").strip().split("\n")[0]


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(page())
