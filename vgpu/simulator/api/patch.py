"""The kinds of PATCH: JSON patch (RFC 6902), merge patch (RFC 7386), and strategic merge patch.

A strategic patch is a merge patch in which lists with a known key are merged item by item, and in which directives
(`$patch`, `$setElementOrder/LIST`, `$deleteFromPrimitiveList/LIST`, `$retainKeys`) say what a merge cannot. In a list
whose order is given, items that the order leaves out come last. The functions do not change their arguments.
https://github.com/kubernetes/community/blob/main/contributors/devel/sig-api-machinery/strategic-merge-patch.md
"""

import copy
from typing import Any, Final

from vgpu.domain.errors import KubernetesError

# Where a list of objects is merged by key instead of replaced, as in the Go types' patchMergeKey.
MERGE_KEYS: Final = {
    "conditions": "type",
    "containers": "name",
    "initContainers": "name",
    "ephemeralContainers": "name",
    "env": "name",
    "volumes": "name",
    "volumeMounts": "mountPath",
    "volumeDevices": "devicePath",
    "imagePullSecrets": "name",
    "hostAliases": "ip",
    "topologySpreadConstraints": "topologyKey",
    "ownerReferences": "uid",
    "taints": "key",
    "addresses": "type",
}
_MERGED_VALUES: Final = "finalizers"  # a list of texts to which a patch adds
_PATCH: Final = "$patch"
_RETAIN: Final = "$retainKeys"
_ORDER: Final = "$setElementOrder/"
_REMOVE: Final = "$deleteFromPrimitiveList/"


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
    """Apply a strategic merge patch to the value of a field.

    Raises:
        KubernetesError: 400, a directive is unknown or has a value of another kind.
    """
    if field in MERGE_KEYS and _are_objects(target) and _are_objects(patch):
        return _merge_items(target, patch, MERGE_KEYS[field])
    if field == _MERGED_VALUES and isinstance(target, list) and isinstance(patch, list):
        return [*target, *(value for value in patch if value not in target)]
    if not isinstance(patch, dict):
        return copy.deepcopy(patch)
    own = {key: value for key, value in patch.items() if not key.startswith("$")}
    match patch.get(_PATCH, "merge"):
        case "merge":
            return _directed(_merge_fields(target, own), patch)
        case "replace":
            return copy.deepcopy(own)
        case "delete":
            return {}
        case other:
            raise _bad(f"{_PATCH} is merge, replace or delete, not {other}")


def _merge_fields(target: Any, patch: dict[str, Any]) -> dict[str, Any]:
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = strategic(result.get(key), value, key)
    return result


def _directed(merged: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    """Follow a patch's directives about the fields of the object that it was merged into."""
    result = merged
    for directive, value in patch.items():
        if directive == _PATCH or not directive.startswith("$"):
            continue
        if not isinstance(value, list):
            raise _bad(f"{directive} must be a list")
        place, _, field = directive.partition("/")
        if directive == _RETAIN:
            result = {key: kept for key, kept in result.items() if key in value}
        elif f"{place}/" not in (_ORDER, _REMOVE):
            raise _bad(f"the directive {directive} is not known")
        elif isinstance(result.get(field), list):
            listed = _ordered(result[field], value, field) if f"{place}/" == _ORDER else _without(result[field], value)
            result = {**result, field: listed}
    return result


def _ordered(items: list[Any], order: list[Any], field: str) -> list[Any]:
    """Sort a list's items as `order` has their keys, or as it has the values themselves."""
    key = MERGE_KEYS.get(field)
    if key and not (_are_objects(items) and _are_objects(order)):
        return items

    def place(item: Any) -> int:
        same = (n for n, wanted in enumerate(order) if (wanted.get(key) == item.get(key) if key else wanted == item))
        return next(same, len(order))

    return sorted(items, key=place)


def _without(values: list[Any], removed: list[Any]) -> list[Any]:
    return [value for value in values if value not in removed]


def _are_objects(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, dict) for item in value)


def _merge_items(target: list[Any], patch: list[Any], key: str) -> list[Any]:
    if any(item.get(_PATCH) == "replace" and key not in item for item in patch):
        return [copy.deepcopy(item) for item in patch if key in item]
    result = list(target)
    for item in patch:
        index = next((n for n, old in enumerate(result) if old.get(key) == item.get(key)), None)
        if item.get(_PATCH) == "delete":
            result = [old for n, old in enumerate(result) if n != index]
        elif index is None:
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
