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
# A name that ends like this holds a secret too: PGPASS, clientsecret, HFTOKEN, openaiapikey, OPENAI_KEY.
_ENDING: Final = (
    r"(?<!com)(?<!by)(?<!tres)(?<!sur)pass|passcode|secret|token|(?:api|access|secret|auth|private|account|master)key"
    r"|(?<!topology)(?<!public)(?<!label)(?<!annotation)(?<!taint)(?<!sort)(?<!partition)(?<!primary)(?<!foreign)"
    r"(?<!cache)(?<!group)(?<!tls)[-_/]key|docker-?config-?json"
)
# What ends like this is a name, a place or a number, as secretName, tokenFile, TOKEN_SECONDS and --max-num-tokens are.
_REFERENCE: Final = re.compile(
    r"(?:name|names|ref|refs|file|path|dir|seconds|minutes|ttl|count|size|limit|type|policy|audience|expiration)$"
    r"|(?:^|[-_.])(?:max|min|num|new|prompt|completion|total|input|output)[-_.](?:\w+[-_.])*tokens$",
    re.IGNORECASE,
)
_SECRET_NAME: Final = re.compile(
    rf"(?:^|[-_./ ])(?:{_WORD})(?:$|[-_./ ])|passw|passphrase|(?:{_ENDING})$", re.IGNORECASE
)
_CAMEL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")

# Each with the part that stays as group 1.
_IN_TEXT: Final = (
    re.compile(r"()-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL),
    re.compile(r"()\bLS0tLS1CRUdJTiB[QSFP][\w+/=]{20,}"),  # such a key in base64; a certificate goes on with D
    re.compile(r"()\beyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)?"),  # JSON Web Token, RFC 7519
    re.compile(r"(\b[a-z][a-z0-9+.-]*://)[^\s/\"'\\]+(?=@)", re.IGNORECASE),  # user information of a URL, RFC 3986
    re.compile(r"(\b(?:bearer|basic)\s+)[\w.~+/=-]{8,}", re.IGNORECASE),
    # AWS: an access key's ID, with the key if it follows; and such a key alone, 40 characters of all kinds.
    re.compile(r"()\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}\b(?:[\s:/|,;]{1,4}[A-Za-z0-9/+]{40}(?![\w/+]))?"),
    re.compile(
        r"()(?<![\w/+.-])(?=[a-z0-9/+]{0,39}[A-Z])(?=[A-Z0-9/+]{0,39}[a-z])(?=[A-Za-z/+]{0,39}\d)"
        r"[A-Za-z0-9/+]{40}(?![\w/+.-])"
    ),
    # Names of Kubernetes have no capitals, so that sk-learn-trainer-7c9d8b6f5 stays.
    re.compile(
        r"()\bsk-(?:(?:proj|ant|svcacct|admin|or|live)-[\w-]{10,}|[A-Za-z0-9]{20,}|(?=[a-z0-9_-]*[A-Z])[\w-]{16,})"
    ),
    re.compile(  # GitHub, GitLab, Slack, Hugging Face, NVIDIA, Google, Stripe, npm, PyPI, SendGrid, Docker and others
        r"()\b(?:gh[pousr]_\w{20,}|github_pat_\w{20,}|gl(?:pat|dt|rt|ptt|ft|cbt|soat|agent)-[\w-]{16,}"
        r"|x(?:ox[abeprs]|app)-[\w-]{10,}|(?:hf|gsk|r8|npm|glsa|glc|whsec|dop_v1|dckr_[op]at)_[\w-]{20,}"
        r"|(?:nvapi|pypi|pplx|xai|GOCSPX)-[\w-]{20,}|AIza[\w-]{30,}|[rs]k_(?:live|test)_\w{10,}|dapi[0-9a-f]{32}"
        r"|SG\.[\w-]{16,}\.[\w-]{16,}|hv[bs]\.[\w-]{20,}|AGE-SECRET-KEY-1[A-Z0-9]{20,})"
    ),
    re.compile(r"(\bhooks\.slack\.com/(?:services|workflows)/)[\w/]+"),
    re.compile(r"(\"auth\\?\"\s*:\s*\\?\")[A-Za-z0-9+/]{8,}={0,2}(?=\\?\")"),  # a registry's, of ~/.docker/config.json
)
# A name and what follows it, as in `token=`, `"password": ` and `api key: `. Possessive: a long text without such a
# separator is read once.
_NAME: Final = re.compile(
    r"(?<![\w.-])(?P<name>(?:(?:api|access|private|connection) )?[\w.-]++)\\?[\"']?\s*[=:]\s*\\?[\"']?", re.IGNORECASE
)
# Options whose value is an argument of its own, in a command line and in lists of JSON and YAML.
_OPTION: Final = re.compile(
    r"(?<![\w.-])(?P<name>--?[a-z][\w.-]*+)\\?[\"']?(?:\s*+,\s*+|\s++)(?:-\s++)?\\?[\"']?(?!-)", re.IGNORECASE
)
_BARE_OPTION: Final = re.compile(r"--?[a-z][\w.-]*+", re.IGNORECASE)
# An environment variable of a container, in JSON or YAML.
_VARIABLE: Final = re.compile(
    r"\bname\\?[\"']?\s*+:\s*+\\?[\"']?(?P<name>[\w.-]++)\\?[\"']?\s*+,?\s*+\\?[\"']?"
    r"value\\?[\"']?\s*+:\s*+\\?[\"']?"
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
    for pattern in (_NAME, _OPTION, _VARIABLE):
        content, found = _without_named(content, pattern)
        removed += found
    return content, removed


def _without_named(content: str, pattern: re.Pattern[str]) -> tuple[str, int]:
    """Remove the values of secret names. A value is not skipped where its name is harmless: it may have names in it."""
    pieces, end = list[str](), 0
    for named in pattern.finditer(content):
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
        before = [None, *value[:-1]]  # the option whose value an argument may be
        items = [
            (REMOVED, 1) if _is_secret_argument(option, item) else document(item, depth + 1)
            for option, item in zip(before, value, strict=False)
        ]
        return [item for item, _ in items], sum(count for _, count in items)
    return _fields(value, depth) if isinstance(value, Mapping) else (value, 0)


def _is_secret_argument(option: Any, argument: Any) -> bool:
    if not isinstance(option, str) or not isinstance(argument, str) or not argument:
        return False
    return _BARE_OPTION.fullmatch(option) is not None and is_secret_name(option) and not argument.startswith("-")


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
