"""Whether `python -m MODULE` accepts the words of a documented command, by the module's own parser.

A module that reads its arguments with argparse is run up to the point where they are read.
"""

import argparse
import importlib.util
import re
import runpy
import sys
from pathlib import Path
from typing import Any, NoReturn
from unittest import mock

from pydantic_settings import BaseSettings, CliApp

from deviceplugin.settings import PluginSettings
from deviceplugin.space.settings import SpaceSettings
from extender.settings import ExtenderSettings
from tests.contract.repository import ROOT
from vgpu.simulator.settings import SimulatorSettings
from webhook.settings import WebhookSettings

SETTINGS: dict[str, type[BaseSettings]] = {
    "extender": ExtenderSettings,
    "deviceplugin": PluginSettings,
    "deviceplugin.space": SpaceSettings,
    "webhook": WebhookSettings,
    "vgpu.simulator": SimulatorSettings,
}
_OPTION = re.compile(r"--[a-z][\w-]*")
_PARSE = argparse.ArgumentParser.parse_args


class _Parsed(Exception):
    """The arguments were accepted."""


class _Refused(Exception):
    """The arguments were refused."""


def problem(module: str, words: tuple[str, ...]) -> str | None:
    """What is wrong with the words after `python -m MODULE`."""
    if module in SETTINGS:
        return _refused_by_settings(SETTINGS[module], words)
    file = _file(module)
    if file is None:
        return None if _is_installed(module) else f"there is no module {module}"
    source = file.read_text()
    if ".parse_args(" in source:
        return _refused_by_argparse(file, words)
    return next((f"{module} has no option {option}" for option in _options(words) if f'"{option}"' not in source), None)


def settings() -> set[str]:
    """The settings of all parts, as options and as environment variables."""
    found = set()
    for kind in SETTINGS.values():
        prefix = kind.model_config.get("env_prefix", "")
        found |= {f"--{name.replace('_', '-')}" for name in kind.model_fields}
        found |= {f"{prefix}{name}".upper() for name in kind.model_fields}
    return found


def _file(module: str) -> Path | None:
    """Return the file of a module of the repository that `python -m` runs."""
    path = ROOT / module.replace(".", "/")
    return next(
        (candidate for candidate in (path.with_suffix(".py"), path / "__main__.py") if candidate.exists()), None
    )


def _is_installed(module: str) -> bool:
    package = module.partition(".")[0]
    return not (ROOT / package).exists() and importlib.util.find_spec(package) is not None


def _options(words: tuple[str, ...]) -> list[str]:
    return [match[0] for word in words if (match := _OPTION.match(word))]


def _refused_by_settings(kind: type[BaseSettings], words: tuple[str, ...]) -> str | None:
    known = {"--help", *(f"--{name.replace('_', '-')}" for name in kind.model_fields)}
    unknown = [option for option in _options(words) if option not in known]
    if unknown or "--help" in words:
        return f"there is no setting {unknown[0]}" if unknown else None
    try:
        CliApp.run(kind, cli_args=list(words))
    except (SystemExit, ValueError) as error:
        return f"the settings are refused: {error}"
    return None


def _refused_by_argparse(file: Path, words: tuple[str, ...]) -> str | None:
    patched = mock.patch.multiple(
        argparse.ArgumentParser,
        parse_args=_parse_and_stop,
        error=_refuse,
        _get_option_tuples=lambda *_: [],  # a shortened option is not accepted
    )
    with patched, mock.patch.object(sys, "argv", [str(file), *words]):
        try:
            runpy.run_path(str(file), run_name="__main__")
        except _Parsed:
            return None
        except _Refused as refused:
            return f"{file.relative_to(ROOT)} refuses: {refused}"
    raise AssertionError(f"{file} ended without having read its arguments")


def _parse_and_stop(parser: argparse.ArgumentParser, *arguments: Any) -> NoReturn:
    _PARSE(parser, *arguments)
    raise _Parsed


def _refuse(_: argparse.ArgumentParser, message: str) -> NoReturn:
    raise _Refused(message)
