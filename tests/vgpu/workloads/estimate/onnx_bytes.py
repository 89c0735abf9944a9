"""Writes small ONNX files, with the fields that the reader knows."""

from collections.abc import Sequence

FLOAT, INT64 = 1, 7


def varint(value: int) -> bytes:
    out = bytearray()
    while True:
        low, value = value & 0x7F, value >> 7
        out.append(low | (0x80 if value else 0))
        if not value:
            return bytes(out)


def number(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value)


def data(field: int, value: bytes | str) -> bytes:
    raw = value.encode() if isinstance(value, str) else value
    return varint(field << 3 | 2) + varint(len(raw)) + raw


def node(op: str, inputs: Sequence[str], outputs: Sequence[str]) -> bytes:
    return data(
        1, b"".join([*(data(1, source) for source in inputs), *(data(2, output) for output in outputs), data(4, op)])
    )


def weight(name: str, shape: Sequence[int], kind: int = FLOAT, raw: bytes = b"") -> bytes:
    return data(5, data(1, b"".join(map(varint, shape))) + number(2, kind) + data(8, name) + data(9, raw))


def value(field: int, name: str, shape: Sequence[int | str]) -> bytes:
    sizes = b"".join(data(1, number(1, size) if isinstance(size, int) else data(2, size)) for size in shape)
    return data(field, data(1, name) + data(2, data(1, number(1, FLOAT) + data(2, sizes))))


def model(*parts: bytes) -> bytes:
    return number(1, 9) + data(2, "a test") + data(7, b"".join(parts))


def perceptron(*, shapes: bool = True) -> bytes:
    """Linear, ReLU, linear: 16 to 32 to 4; the ReLU's output has no shape without `shapes`."""
    return model(
        node("Gemm", ["x", "w1", "b1"], ["h"]),
        node("Relu", ["h"], ["r"]),
        node("Gemm", ["r", "w2", "b2"], ["y"]),
        weight("w1", [32, 16], raw=bytes(32 * 16 * 4)),
        weight("b1", [32]),
        weight("w2", [4, 32]),
        weight("b2", [4]),
        weight("shape", [2], INT64),
        value(11, "x", ["batch", 16]),
        value(12, "y", ["batch", 4]),
        *([value(13, "h", ["batch", 32]), value(13, "r", ["batch", 32])] if shapes else []),
    )
