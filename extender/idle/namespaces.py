"""The defaults of namespaces for their idle pods, by annotation of the namespace."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from extender.effects.event_recorder import EventRecorder
from vgpu.domain.asks import idle
from vgpu.domain.asks.idle import NOTHING_SET, Setting
from vgpu.domain.problem import Problem

PATH: Final = "/api/v1/namespaces"
UNREADABLE: Final = "IdleDefaultUnreadable"


@dataclass(frozen=True, slots=True)
class IdleNamespace:
    """A namespace with what it says about idle pods."""

    name: str
    uid: str
    setting: Setting = NOTHING_SET
    problems: tuple[Problem, ...] = ()

    @property
    def reference(self) -> dict[str, str]:
        """The reference for an Event about this object."""
        return {"apiVersion": "v1", "kind": "Namespace", "uid": self.uid, "name": self.name}


class Namespaces:
    """The namespaces' settings: the handler of their watch."""

    def __init__(self, recorder: EventRecorder) -> None:
        self._recorder = recorder
        self._settings: dict[str, Setting] = {}

    def setting(self, name: str) -> Setting:
        """Return what a namespace says."""
        return self._settings.get(name, NOTHING_SET)

    def replace(self, objects: list[IdleNamespace], version: str) -> None:  # noqa: ARG002 - the reflector's protocol
        """Take a full list."""
        self._settings = {}
        for obj in objects:
            self.upsert(obj)

    def upsert(self, obj: IdleNamespace) -> None:
        """Take a namespace that is new or changed."""
        if obj.setting == NOTHING_SET:
            self._settings.pop(obj.name, None)
        else:
            self._settings[obj.name] = obj.setting
        if obj.problems:
            message = f"nothing is done about idle pods by default: {'; '.join(map(str, obj.problems))}"
            self._recorder.record(obj.reference, UNREADABLE, message)

    def delete(self, obj: IdleNamespace) -> None:
        """Take a namespace's deletion."""
        self._settings.pop(obj.name, None)


class _NamespaceMetadata(msgspec.Struct):
    name: str
    uid: str = ""
    annotations: Mapping[str, Any] | None = None


class _Namespace(msgspec.Struct):
    metadata: _NamespaceMetadata


_decode = msgspec.json.Decoder(_Namespace).decode


def decode(raw: bytes) -> IdleNamespace:
    """Read a namespace. Raises msgspec.ValidationError."""
    metadata = _decode(raw).metadata
    texts = {key: value for key, value in (metadata.annotations or {}).items() if isinstance(value, str)}
    setting, problems = idle.read(texts)
    return IdleNamespace(metadata.name, metadata.uid, setting, tuple(problems))
