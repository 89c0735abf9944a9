"""Fields of a protobuf message in a file, without reading what nobody asks for (protobuf.dev, "Encoding").

A field is a tag (number and wire type) and a value: a varint, 4 or 8 bytes, or a length and that many bytes. Weights,
which make up nearly all of an ONNX file, are skipped by a seek.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO, Final

from vgpu.domain import printable
from vgpu.domain.errors import MalformedModel

MAX_FIELDS: Final = 2_000_000  # of one file
MAX_TEXT: Final = 4096  # bytes of a name
MAX_TEXTS: Final = 64 << 20  # bytes of all names of one file
_VARINT, _EIGHT, _BYTES, _FOUR = 0, 1, 2, 5
_FIXED: Final = {_EIGHT: 8, _FOUR: 4}
_MAX_VARINT: Final = 10  # bytes


@dataclass(frozen=True, slots=True)
class Span:
    """Where the bytes of a field lie in the file."""

    begin: int
    end: int


@dataclass(frozen=True, slots=True)
class ProtobufField:
    """A field: its number, and an integer or where its bytes are."""

    number: int
    value: int | Span


class Message:
    """Reads the fields of messages of one file, and counts them. Not safe for use by two threads."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._left = MAX_FIELDS
        self._text_left = MAX_TEXTS
        self.whole = Span(0, file.seek(0, os.SEEK_END))

    def fields(self, span: Span) -> Iterator[ProtobufField]:
        """Yield the fields of the message at a span. Raises MalformedModel."""
        at = span.begin
        while at < span.end:
            self._left -= 1
            if self._left < 0:
                raise MalformedModel(f"ONNX: more than {MAX_FIELDS} fields")
            tag, at = self._varint(at, span.end)
            field, at = self._value(tag, at, span.end)
            yield field

    def text(self, field: ProtobufField) -> str:
        """Return a name, with only printable characters. Raises MalformedModel."""
        span = _span(field)
        size = span.end - span.begin
        if size > MAX_TEXT:
            raise MalformedModel(f"ONNX: a name of {size} bytes, more than {MAX_TEXT}")
        self._text_left -= size
        if self._text_left < 0:
            raise MalformedModel(f"ONNX: names of more than {MAX_TEXTS >> 20} MiB")
        self._file.seek(span.begin)
        return printable.line(self._file.read(size).decode(errors="replace"))

    def message(self, field: ProtobufField) -> Iterator[ProtobufField]:
        """Yield the fields of a message inside of a field. Raises MalformedModel."""
        return self.fields(_span(field))

    def integers(self, field: ProtobufField) -> Iterator[int]:
        """Yield the numbers of a repeated field, packed or not. Raises MalformedModel."""
        if isinstance(field.value, int):
            yield _signed(field.value)
            return
        at = field.value.begin
        while at < field.value.end:
            value, at = self._varint(at, field.value.end)
            self._left -= 1
            if self._left < 0:
                raise MalformedModel(f"ONNX: more than {MAX_FIELDS} fields")
            yield _signed(value)

    def _value(self, tag: int, at: int, end: int) -> tuple[ProtobufField, int]:
        number, wire = tag >> 3, tag & 7
        if wire == _VARINT:
            value, at = self._varint(at, end)
            return ProtobufField(number, value), at
        if wire == _BYTES:
            size, at = self._varint(at, end)
        elif wire in _FIXED:
            size = _FIXED[wire]
        else:
            raise MalformedModel(f"ONNX: field {number} at byte {at}: wire type {wire} is unknown; not an ONNX file")
        if size > end - at:
            raise MalformedModel(f"ONNX: field {number} at byte {at}: {size} bytes, but {end - at} are left")
        return ProtobufField(number, Span(at, at + size)), at + size

    def _varint(self, at: int, end: int) -> tuple[int, int]:
        self._file.seek(at)
        data = self._file.read(min(_MAX_VARINT, end - at))
        value = 0
        for index, byte in enumerate(data):
            value |= (byte & 0x7F) << (7 * index)
            if byte < 0x80:  # noqa: PLR2004 - the highest bit says that another byte follows
                return value & (2**64 - 1), at + index + 1
        raise MalformedModel(f"ONNX: a number at byte {at} does not end; not an ONNX file")


def _span(field: ProtobufField) -> Span:
    if isinstance(field.value, int):
        raise MalformedModel(f"ONNX: field {field.number} is a number instead of bytes")
    return field.value


def _signed(value: int) -> int:
    return value - 2**64 if value >= 2**63 else value
