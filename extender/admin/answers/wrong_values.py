"""Says in words what is wrong in a request; pydantic and msgspec would print regular expressions and names of types."""

import re
from collections.abc import Collection, Mapping
from typing import Any, Final

from extender.admin.answers.listed.filters import NAME
from extender.admin.problems import FieldError
from vgpu.domain import suggestion
from vgpu.domain.problem import clipped

UUID: Final = r"^[A-Za-z0-9-]+$"
_WORDS: Final = {
    NAME: "is no name: letters, digits, -, _ and . only, the first and the last a letter or digit, at most 253",
    UUID: "is no UUID of a card: letters, digits and - only",
}
_CHOICES: Final = re.compile(r"\^\((?P<choices>[\w|]+)\)\$")
_OF_TYPES: Final = {
    "int_parsing": "must be a whole number",
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "bool_parsing": "must be true or false",
    "bool_type": "must be true or false",
    "string_type": "must be text",
    "list_type": "must be a list",
    "dict_type": "must be an object",
    "model_attributes_type": "must be an object",
    "missing": "is missing",
}
_JSON_TYPES: Final = {
    "array": "a list",
    "object": "an object",
    "str": "text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
}
_MISMATCH: Final = re.compile(r"Expected `(?P<types>[^`]+)`, got `[^`]+`(?: - at `\$\.?(?P<path>[^`]*)`)?")


def words(error: Mapping[str, Any], known: Collection[str] | None = None) -> str:
    """Return what one of pydantic's errors says; `known` are the names that are permitted where a name is not."""
    kind, said = str(error["type"]), str(error["msg"])
    if kind == "extra_forbidden":
        return _not_known(str(error["loc"][-1]), known)
    if kind != "string_pattern_mismatch":
        return _OF_TYPES.get(kind, said)
    value, pattern = clipped(str(error["input"])), str(error["ctx"]["pattern"])
    if choices := _CHOICES.fullmatch(pattern):
        return f"{value!r} is not one of {', '.join(choices['choices'].split('|'))}"
    return f"{value!r} {_WORDS[pattern]}" if pattern in _WORDS else said


def _not_known(name: str, known: Collection[str] | None) -> str:
    if known is None:
        return "is not known"
    return f"is not known; {suggestion.instead_of(name, sorted(known)) if known else 'there are none here'}"


def of_manifest(said: str) -> FieldError:
    """Return the field of a manifest and what it must be, by msgspec's message; an empty field for the whole manifest.

    `[...]` in a path stands for any key.
    """
    match = _MISMATCH.match(said)
    types = [_JSON_TYPES[name] for name in match["types"].split(" | ") if name in _JSON_TYPES] if match else []
    if match is None or not types:
        return FieldError("", f"is no readable Pod: {said}")
    return FieldError(match["path"] or "", f"must be {' or '.join(types)}")
