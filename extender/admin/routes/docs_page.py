"""The OpenAPI document as one HTML page, without scripts and without anything from elsewhere."""

import html as escaping
import json
import re
from collections.abc import Iterator
from typing import Any, Final

from vgpu.domain.json_types import Json

HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'",
    "Cache-Control": "no-cache",
}
_CODE: Final = re.compile("`([^`]+)`")
_STYLE: Final = """
:root { color-scheme: light dark }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
code, pre { font: 13px/1.4 ui-monospace, monospace }
pre { overflow: auto; padding: .6rem; border: 1px solid #8886; border-radius: 4px }
table { border-collapse: collapse; width: 100% }
h2, td, code { overflow-wrap: anywhere }
td:nth-child(2):not(:last-child) { white-space: nowrap }
td, th { text-align: left; vertical-align: top; padding: .2rem .8rem .2rem 0; border-bottom: 1px solid #8884 }
h2 { margin-top: 2.5rem }
summary { cursor: pointer }
@media (prefers-color-scheme: dark) { body { background: #141917; color: #e6ecea } a { color: #63cfa3 } }
.verb { font-weight: 600; text-transform: uppercase }
"""


def html(document: Json) -> str:
    """Return the page of an OpenAPI document."""
    head = (
        f"<!doctype html><html lang=en><meta charset=utf-8><title>{_e(document['info']['title'])}</title>"
        "<meta name=viewport content='width=device-width, initial-scale=1'>"
    )
    back = "<p><a href=../../>← Dashboard</a></p>"  # relative: the page may stand behind a proxy's path
    title = f"<h1>{_e(document['info']['title'])} {_e(document['info']['version'])}</h1>"
    intro = f"<p>{_prose(document['info'].get('description', ''))}</p><p><a href=openapi.json>OpenAPI document</a></p>"
    operations = "".join(
        _operation(path, verb, operation, document)
        for path, verbs in document["paths"].items()
        for verb, operation in verbs.items()
    )
    return f"{head}<style>{_STYLE}</style><main>{back}{title}{intro}{operations}</main></html>"


def _operation(path: str, verb: str, operation: Json, document: Json) -> str:
    heading = f"<h2 id={_e(operation['operationId'])}><span class=verb>{_e(verb)}</span> <code>{_e(path)}</code></h2>"
    text = f"<p>{_prose(operation.get('description') or operation.get('summary', ''))}</p>"
    parameters = "".join(_parameter(parameter) for parameter in operation.get("parameters", ()))
    table = f"<table><tr><th>parameter<th>in<th>meaning</tr>{parameters}</table>" if parameters else ""
    body = _content(operation.get("requestBody", {}), document, "request")
    answer = _content(operation["responses"].get("200", {}), document, "answer")
    others = "".join(
        f"<tr><td>{_e(status)}<td>{_prose(response['description'])}</tr>"
        for status, response in operation["responses"].items()
        if status != "200"
    )
    errors = f"<details><summary>errors</summary><table>{others}</table></details>"
    return heading + text + table + body + answer + errors


def _parameter(parameter: Json) -> str:
    return (
        f"<tr><td><code>{_e(parameter['name'])}</code><td>{_e(parameter['in'])}"
        f"<td>{_prose(parameter.get('description', ''))} <code>{_e(_type(parameter.get('schema', {})))}</code></tr>"
    )


def _type(schema: Json) -> str:
    if "anyOf" in schema:
        return " or ".join(_type(option) for option in schema["anyOf"] if option.get("type") != "null")
    kind = str(schema.get("type", ""))
    if kind == "array":
        return f"{_type(schema.get('items', {}))}, repeated"
    limits = [f"{low}..{schema['maximum']}" for low in [schema.get("minimum")] if "maximum" in schema]
    return " ".join([kind, *limits, *([f"= {schema['default']}"] if schema.get("default") not in (None, "") else [])])


def _content(part: Json, document: Json, title: str) -> str:
    found = []
    for media, content in part.get("content", {}).items():
        example = content.get("example") or json.dumps(_example(content.get("schema", {}), document), indent=1)
        found.append(f"<details><summary>{_e(title)}: {_e(media)}</summary><pre>{_e(str(example))}</pre></details>")
    return "".join(found)


def _example(schema: Json, document: Json) -> Any:
    """Return an example of a schema: the first of its own, or one made of its parts."""
    if "$ref" in schema:
        return _example(document["components"]["schemas"][schema["$ref"].rpartition("/")[2]], document)
    if schema.get("examples"):
        return schema["examples"][0]
    if "anyOf" in schema:
        return _example(schema["anyOf"][0], document)
    if schema.get("type") == "object":
        return {name: _example(prop, document) for name, prop in schema.get("properties", {}).items()}
    return next(_plain(schema, document))


def _plain(schema: Json, document: Json) -> Iterator[Any]:
    if schema.get("type") == "array":
        yield [_example(schema.get("items", {}), document)]
    yield schema.get("default", {"integer": 0, "boolean": False, "string": ""}.get(str(schema.get("type"))))


def _prose(text: object) -> str:
    """Return text with what stands between backticks as code."""
    return _CODE.sub(r"<code>\1</code>", _e(text))


def _e(text: object) -> str:
    return escaping.escape(str(text), quote=True)
