"""Says in words what is wrong with a value of a request; pydantic would print its regular expression."""

import re
from collections.abc import Mapping
from typing import Any, Final

from extender.admin.answers.listed.filters import NAME
from vgpu.domain.problem import clipped

UUID: Final = r"^[A-Za-z0-9-]+$"
_WORDS: Final = {
    NAME: "is no name: letters, digits, -, _ and . only, the first and the last a letter or digit, at most 253",
    UUID: "is no UUID of a card: letters, digits and - only",
}
_CHOICES: Final = re.compile(r"\^\((?P<choices>[\w|]+)\)\$")


def words(error: Mapping[str, Any]) -> str:
    """Return what one of pydantic's errors says."""
    said = str(error["msg"])
    if error["type"] != "string_pattern_mismatch":
        return said
    value, pattern = clipped(str(error["input"])), str(error["ctx"]["pattern"])
    if choices := _CHOICES.fullmatch(pattern):
        return f"{value!r} is not one of {', '.join(choices['choices'].split('|'))}"
    return f"{value!r} {_WORDS[pattern]}" if pattern in _WORDS else said
