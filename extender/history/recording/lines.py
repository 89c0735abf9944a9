"""The lines of the spill: one record each, as JSON after a CRC-32 of the JSON, in hexadecimal.

    5e0b3a91 {"v":1,"kind":"start","event":{"pod":{"uid":...},...}}

A line that was written in part, or changed on disk, fails the check.
"""

import zlib
from typing import Any, Final

import msgspec

from extender.history.recording import events
from extender.history.recording.events import CardMeasured, Listed, Record, Used, Watched
from vgpu.domain.errors import MalformedEvent

VERSION: Final = 1
MAX_LINE: Final = 16 << 20  # bytes; the list of 100,000 pods has 4 MB
_CRC_DIGITS: Final = 8

_NAMES: Final[dict[type, str]] = {
    **events.KINDS,
    Used: "used",
    CardMeasured: "card_measured",
    Watched: "watched",
    Listed: "listed",
}
_DECODERS: Final[dict[str, msgspec.json.Decoder[Any]]] = {
    name: msgspec.json.Decoder(kind) for kind, name in _NAMES.items()
}


class _Envelope(msgspec.Struct):
    v: int
    kind: str
    event: msgspec.Raw


_decode_envelope: Final = msgspec.json.Decoder(_Envelope).decode


def encode(record: Record) -> bytes:
    """Write a record as a line, with the newline."""
    envelope = _Envelope(VERSION, _NAMES[type(record)], msgspec.Raw(payload(record)))
    text = msgspec.json.encode(envelope)
    return b"%08x %s\n" % (zlib.crc32(text), text)


def decode(line: bytes) -> Record:
    """Read a line without its newline.

    Raises:
        MalformedEvent: the line was not written completely, or by another version of this program.
    """
    crc, _, text = line.partition(b" ")
    if len(crc) != _CRC_DIGITS or crc != b"%08x" % zlib.crc32(text):
        raise MalformedEvent("the checksum is wrong")
    try:
        envelope = _decode_envelope(text)
    except msgspec.MsgspecError as error:
        raise MalformedEvent(str(error)) from None
    if envelope.v != VERSION or envelope.kind not in _DECODERS:
        raise MalformedEvent(f"version {envelope.v}, kind {envelope.kind[:40]}: this program reads version {VERSION}")
    record: Record = from_payload(envelope.kind, envelope.event)
    return record


def payload(record: Record) -> bytes:
    """Write a record's fields as JSON."""
    return msgspec.json.encode(record)


def from_payload(kind: str, text: bytes | msgspec.Raw) -> Any:
    """Read a record's fields.

    Raises:
        MalformedEvent: a field is missing or has a wrong type.
    """
    try:
        return _DECODERS[kind].decode(text)
    except msgspec.MsgspecError as error:
        raise MalformedEvent(f"{kind}: {error}") from None
