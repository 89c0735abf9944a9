"""Label selectors, the forms that kubectl's `-l` has for equality and existence: `app=web,tier!=db,gpu,!old`."""

import re
from collections.abc import Callable, Mapping
from typing import Final

from extender.admin.problems import bad_field

MAX_LENGTH: Final = 1024
_KEY: Final = r"[A-Za-z0-9]([-A-Za-z0-9_./]{0,315}[A-Za-z0-9])?"
_VALUE: Final = r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?"
_COMPARED: Final = re.compile(rf"(?P<key>{_KEY})\s*(?P<op>==|=|!=)\s*(?P<value>{_VALUE})", re.ASCII)
_EXISTS: Final = re.compile(rf"(?P<op>!?)(?P<key>{_KEY})", re.ASCII)

Matches = Callable[[Mapping[str, str]], bool]


def parse(text: str) -> Matches:
    """Return whether labels match a selector; an empty one matches all. Raises AdminProblem."""
    parts = [_part(part.strip()) for part in text.split(",")] if text.strip() else []
    return lambda labels: all(part(labels) for part in parts)


def _part(text: str) -> Matches:
    if compared := _COMPARED.fullmatch(text):
        key, value, wanted = compared["key"], compared["value"], compared["op"] != "!="
        return lambda labels: (labels.get(key) == value) is wanted
    if exists := _EXISTS.fullmatch(text):
        key, wanted = exists["key"], not exists["op"]
        return lambda labels: (key in labels) is wanted
    raise bad_field("selector", f"{text[:60]!r} is none of KEY=VALUE, KEY!=VALUE, KEY, !KEY")
