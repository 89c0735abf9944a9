"""Removes secrets from objects and texts before they leave the cluster. Pure.

No Secret is read at all. What is removed here are secrets that people have put where they do not belong: in an
argument, an environment variable, a ConfigMap, an annotation, a log. Names and references of Secrets stay, since
problems are about them.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

REMOVED: Final = "REMOVED"
MAX_DEPTH: Final = 100

_WORD: Final = (
    r"pass(?:word|wd|phrase)?|pwd|secrets?|tokens?|api[-_ ]?keys?|access[-_ ]?keys?|private[-_ ]?keys?|client[-_]key"
    r"(?:[-_]data)?|credentials?|dsn|connection[-_ ]?strings?|authorization|cookie"
)
# What ends like this is a name, a place or a number, as secretName, tokenFile and TOKEN_SECONDS are.
_REFERENCE: Final = re.compile(
    r"(?:name|names|ref|refs|file|path|dir|seconds|minutes|ttl|count|size|limit|type|policy|audience|expiration)$",
    re.IGNORECASE,
)
_SECRET_NAME: Final = re.compile(rf"(?:^|[-_./ ])(?:{_WORD})(?:$|[-_./ ])|passw|passphrase", re.IGNORECASE)
_CAMEL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")

# Each with the part that stays as group 1.
_IN_TEXT: Final = (
    re.compile(r"()-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL),
    re.compile(r"()\beyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)?"),  # JSON Web Token, RFC 7519
    re.compile(r"(\b[a-z][a-z0-9+.-]*://)[^\s/\"'\\]+(?=@)", re.IGNORECASE),  # user information of a URL, RFC 3986
    re.compile(r"(\b(?:bearer|basic)\s+)[\w.~+/=-]{8,}", re.IGNORECASE),
    re.compile(r"()\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"),  # AWS
    re.compile(r"()\b(?:gh[pousr]_\w{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}|xox[abprs]-[\w-]{10,}|hf_\w{20,})"),
)
# A name and what follows it, as in `token=`, `"password": ` and `api key: `. Possessive: a long text without such a
# separator is read once.
_NAME: Final = re.compile(
    r"(?<![\w.-])(?P<name>(?:(?:api|access|private|connection) )?[\w.-]++)\\?[\"']?\s*[=:]\s*\\?[\"']?", re.IGNORECASE
)
_VALUE: Final = re.compile(rf"(?!{REMOVED})[^\s\"'\\,;&]{{3,}}")
_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"


def is_secret_name(name: str) -> bool:
    """Return whether a field or an environment variable of this name holds a secret, and not only names one."""
    words = _CAMEL.sub("-", name)
    return not _REFERENCE.search(words) and _SECRET_NAME.search(words) is not None


def text(content: str) -> tuple[str, int]:
    """Return a text without secrets, and how many were removed."""
    removed = 0
    for pattern in _IN_TEXT:
        content, found = pattern.subn(rf"\g<1>{REMOVED}", content)
        removed += found
    content, found = _without_named(content)
    return content, removed + found


def _without_named(content: str) -> tuple[str, int]:
    """Remove the values of secret names. A value is not skipped where its name is harmless: it may have names in it."""
    pieces, end = list[str](), 0
    for named in _NAME.finditer(content):
        if named.start() < end or not is_secret_name(named["name"]):
            continue
        if value := _VALUE.match(content, named.end()):
            pieces += [content[end : named.end()], REMOVED]
            end = value.end()
    return "".join([*pieces, content[end:]]), len(pieces) // 2


def document(value: Any, depth: int = 0) -> tuple[Any, int]:
    """Return a JSON document without secrets, and how many were removed. What lies too deep is removed as a whole."""
    if depth > MAX_DEPTH:
        return REMOVED, 1
    if isinstance(value, str):
        return text(value)
    if isinstance(value, list):
        items = [document(item, depth + 1) for item in value]
        return [item for item, _ in items], sum(count for _, count in items)
    return _fields(value, depth) if isinstance(value, Mapping) else (value, 0)


def _fields(value: Mapping[str, Any], depth: int) -> tuple[dict[str, Any], int]:
    made: dict[str, Any] = {}
    removed = 0
    for name, field in value.items():
        if name in ("managedFields", _LAST_APPLIED):  # long, and repeat other fields
            continue
        made[name], count = (REMOVED, 1) if _holds_secret(value, name, field) else document(field, depth + 1)
        removed += count
    return made, removed


def _holds_secret(owner: Mapping[str, Any], name: str, field: Any) -> bool:
    if name in ("data", "stringData") and owner.get("kind") == "Secret":
        return True
    if not isinstance(field, str) or not field:
        return False
    is_variable = name == "value" and isinstance(owner.get("name"), str)
    return is_secret_name(str(owner["name"]) if is_variable else name)
