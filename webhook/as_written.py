"""Remembers what the webhook has translated in a pod, so that the unchanged manifest can be applied again.

`kubectl apply`, Helm and Argo CD send again what the manifest says and the pod lacks. For a translated pod that is the
foreign name, or the percentage, beside what it has become. The API server refuses such a pod, because its resources
would change. So the webhook removes again from a changed pod what it had removed at the pod's creation. Anything else
stays as it was sent, and the API server decides (docs/adr/0147).
"""

from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from vgpu.domain import names
from vgpu.domain.asks import manifest, request, translate
from vgpu.domain.json_types import Json

VERSION: Final = 1

Amounts = Mapping[str, str]  # by resource name


class _Record(msgspec.Struct, forbid_unknown_fields=True):
    v: int
    containers: dict[str, dict[str, str]]


_decode = msgspec.json.Decoder(_Record).decode


def recorded(written: Json, completed: Json) -> Json:
    """Return a completed new pod with a record of the amounts that it has lost; `written` is the pod before."""
    after = {
        str(container.get("name")): request.amounts(container) for _, _, container in request.containers_of(completed)
    }
    lost = {name: gone for name, before in _amounts(written) if (gone := _without(before, after.get(name, {})))}
    if not lost:
        return completed
    text = msgspec.json.encode(_Record(VERSION, lost)).decode()
    metadata = completed["metadata"]
    annotations = {**manifest.annotations(completed), names.AS_WRITTEN: text}
    return {**completed, "metadata": {**metadata, "annotations": annotations}}


def undone(old: Json, new: Json) -> Json:
    """Return a changed pod without the amounts that translation had removed from it, where they are sent unchanged."""
    lost = _record(manifest.annotations(old).get(names.AS_WRITTEN, ""))
    if not lost:
        return new
    before = dict(_amounts(old))
    containers = [_undone(container, before, lost) for _, _, container in request.containers_of(new)]
    return translate.with_containers(new, containers)


def _undone(container: Json, before: Mapping[str, Amounts], lost: Mapping[str, Amounts]) -> Json:
    name = str(container.get("name"))
    added = _without(request.amounts(container), before.get(name, {}))
    return translate.replaced(container, added, {}) if added and added == lost.get(name) else container


def _record(annotation: str) -> Mapping[str, Amounts]:
    """Read a record; users can write it too, and one that cannot be read says nothing."""
    try:
        record = _decode(annotation)
    except (msgspec.DecodeError, UnicodeEncodeError):
        return {}
    return record.containers if record.v == VERSION else {}


def _amounts(pod: Json) -> Iterator[tuple[str, Amounts]]:
    for _, _, container in request.containers_of(pod):
        yield str(container.get("name")), request.amounts(container)


def _without(amounts: Amounts, known: Amounts) -> dict[str, str]:
    return {name: amount for name, amount in amounts.items() if name not in known}
