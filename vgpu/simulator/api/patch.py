"""The kinds of PATCH: JSON patch (RFC 6902), merge patch (RFC 7386), and a simplified strategic merge patch.

A strategic patch here is a merge patch in which lists with a known key are merged item by item. Directives (`$patch`,
`$retainKeys`, ...) are refused. The functions do not change their arguments.
"""

import copy
from typing import Any, Final

from vgpu.domain.errors import KubernetesError

# Where a list of objects is merged by key instead of replaced, as in the Go types' patchMergeKey.
MERGE_KEYS: Final = {
    "conditions": "type",
    "containers": "name",
    "initContainers": "name",
    "env": "name",
    "ownerReferences": "uid",
    "taints": "key",
    "addresses": "type",
}


def merge(target: Any, patch: Any) -> Any:
    """Apply a merge patch: null removes, objects merge, everything else replaces."""
    if not isinstance(patch, dict):
        return copy.deepcopy(patch)
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merge(result.get(key), value)
    return result


def strategic(target: Any, patch: Any, field: str = "") -> Any:
    """Apply a strategic merge patch, simplified as described above.

    Raises:
        KubernetesError: 400, the patch contains a directive.
    """
    if field in MERGE_KEYS and _are_objects(target) and _are_objects(patch):
        return _merge_items(target, patch, MERGE_KEYS[field])
    if not isinstance(patch, dict):
        return copy.deepcopy(patch)
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if key.startswith("$"):
            raise _bad(f"the simulator does not implement the directive {key}")
        if value is None:
            result.pop(key, None)
        else:
            result[key] = strategic(result.get(key), value, key)
    return result


def _are_objects(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, dict) for item in value)


def _merge_items(target: list[Any], patch: list[Any], key: str) -> list[Any]:
    result = list(target)
    for item in patch:
        index = next((n for n, old in enumerate(result) if old.get(key) == item.get(key)), None)
        if index is None:
            result.append(strategic(None, item))
        else:
            result[index] = strategic(result[index], item)
    return result


def json_patch(target: Any, operations: Any) -> Any:
    """Apply a list of JSON patch operations, all or none.

    Raises:
        KubernetesError: 400 where the patch cannot be read, 422 where it does not fit the object or a test fails.
    """
    if not isinstance(operations, list):
        raise _bad("a JSON patch is a list of operations")
    result = copy.deepcopy(target)
    for operation in operations:
        try:
            result = _apply(result, operation)
        except (KeyError, IndexError, ValueError, TypeError) as error:
            raise _misfit(f"{operation}: {error!r}") from None
    return result


def _apply(document: Any, operation: dict[str, Any]) -> Any:
    path = _pointer(operation["path"])
    match operation["op"]:
        case "add":
            return _add(document, path, copy.deepcopy(operation["value"]))
        case "remove":
            return _remove(document, path)
        case "replace":
            _at(document, path)
            return _replace(document, path, copy.deepcopy(operation["value"]))
        case "copy":
            return _add(document, path, copy.deepcopy(_at(document, _pointer(operation["from"]))))
        case "move":
            source = _pointer(operation["from"])
            value = _at(document, source)
            return _add(_remove(document, source), path, value)
        case "test":
            if _at(document, path) != operation["value"]:
                raise _misfit(f"testing value {operation['path']} failed")
            return document
        case other:
            raise _bad(f"unknown operation {other}")


def _pointer(text: Any) -> list[str]:
    if not isinstance(text, str) or (text and not text.startswith("/")):
        raise ValueError(text)
    return [step.replace("~1", "/").replace("~0", "~") for step in text.split("/")[1:]]


def _at(document: Any, path: list[str]) -> Any:
    for step in path:
        document = document[_step(document, step)]
    return document


def _step(container: Any, step: str) -> Any:
    """Return what indexes `container`: a key, or a list's position."""
    if not isinstance(container, list):
        return step
    if not (step.isascii() and step.isdigit()):
        raise ValueError(step)
    return int(step)


def _add(document: Any, path: list[str], value: Any) -> Any:
    if not path:
        return value
    parent, last = _at(document, path[:-1]), path[-1]
    if not isinstance(parent, list):
        parent[last] = value
        return document
    index = len(parent) if last == "-" else _step(parent, last)
    if index > len(parent):
        raise IndexError(index)
    parent.insert(index, value)
    return document


def _replace(document: Any, path: list[str], value: Any) -> Any:
    if not path:
        return value
    parent = _at(document, path[:-1])
    parent[_step(parent, path[-1])] = value
    return document


def _remove(document: Any, path: list[str]) -> Any:
    parent = _at(document, path[:-1])
    del parent[_step(parent, path[-1])]
    return document


def _bad(message: str) -> KubernetesError:
    return KubernetesError(400, "BadRequest", message)


def _misfit(message: str) -> KubernetesError:
    return KubernetesError(422, "Invalid", f"the server rejected our request due to an error in our request: {message}")
