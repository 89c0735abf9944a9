"""Classes of options: a dataclass, each of whose fields is an option of a command.

Typer reads options from a command's signature and cannot take them from a class: the signature is extended here.
"""

import functools
import inspect
from collections.abc import Callable, Iterator
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, get_type_hints

Command = Callable[..., None]


def expanded(command: Command) -> Command:
    """Return a command with the options of each dataclass among its parameters in that parameter's place."""
    own = inspect.signature(command).parameters.values()
    classes: dict[str, Any] = {
        parameter.name: parameter.annotation for parameter in own if is_dataclass(parameter.annotation)
    }

    @functools.wraps(command)
    def with_objects(**given: Any) -> None:
        objects = {
            name: kind(**{field.name: given.pop(field.name) for field in fields(kind)})
            for name, kind in classes.items()
        }
        command(**given, **objects)

    return with_parameters(with_objects, [option for parameter in own for option in _options(parameter)])


def with_parameters(command: Command, parameters: list[inspect.Parameter]) -> Command:
    """Return the command with the signature that typer reads; it is called with names."""
    named = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in parameters]
    command.__signature__ = inspect.Signature(named)  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in named}
    return command


def _options(parameter: inspect.Parameter) -> Iterator[inspect.Parameter]:
    """Yield the options of a class, or the parameter itself."""
    kind = parameter.annotation
    if not is_dataclass(kind):
        yield parameter
        return
    hints = get_type_hints(kind, include_extras=True)
    for field in fields(kind):
        default = inspect.Parameter.empty if field.default is MISSING else field.default
        yield inspect.Parameter(field.name, parameter.kind, default=default, annotation=hints[field.name])
