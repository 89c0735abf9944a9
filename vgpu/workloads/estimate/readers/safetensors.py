"""safetensors: the names, types and shapes of a model's weights, from the header; the weights are not read.

A file is a length (8 bytes, little-endian), that much JSON, and the weights (github.com/huggingface/safetensors,
"Format"): `{"NAME": {"dtype": "BF16", "shape": [4096, 4096], "data_offsets": [0, 33554432]}, "__metadata__": {...}}`.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import BinaryIO, Final

from vgpu.domain.errors import MalformedModel
from vgpu.workloads.estimate.plan import Dtype
from vgpu.workloads.estimate.readers import json_text, numbers

MAX_HEADER: Final = 16 << 20  # bytes: some 100,000 tensors; the format's own limit of 100 MB takes a minute to read
MAX_TENSORS: Final = 200_000
_MAX_DIMENSIONS: Final = 16
_LENGTH: Final = struct.Struct("<Q")
_METADATA: Final = "__metadata__"
_DTYPES: Final = {
    "F64": Dtype.FP32,
    "F32": Dtype.FP32,
    "BF16": Dtype.BF16,
    "F16": Dtype.FP16,
    "F8_E4M3": Dtype.FP8,
    "F8_E5M2": Dtype.FP8,
    "I8": Dtype.INT8,
    "U8": Dtype.INT8,
}
_NOT_WEIGHTS: Final = frozenset({"I16", "U16", "I32", "U32", "I64", "U64", "BOOL", "F8_E8M0"})


@dataclass(frozen=True, slots=True)
class StoredWeights:
    """The weights of a file: their number, and the type of most of them."""

    parameters: int
    dtype: Dtype


def read(file: BinaryIO) -> StoredWeights:
    """Read the header of a file at its beginning. Raises MalformedModel."""
    counts: dict[Dtype, int] = {}
    for dtype, elements in _tensors(_header(file)):
        counts[dtype] = counts.get(dtype, 0) + elements
    total = sum(counts.values())
    if not 0 < total <= numbers.MAX_ELEMENTS:
        raise MalformedModel(f"safetensors header: {total} parameters")
    return StoredWeights(total, max(counts, key=lambda dtype: counts[dtype]))


def _header(file: BinaryIO) -> dict[str, object]:
    first = file.read(_LENGTH.size)
    if len(first) != _LENGTH.size:
        raise MalformedModel("safetensors header: the file is shorter than 8 bytes")
    (length,) = _LENGTH.unpack(first)
    if not 0 < length <= MAX_HEADER:
        raise MalformedModel(f"safetensors header: a length of {length} bytes, not 1 to {MAX_HEADER}: not such a file")
    data = file.read(length)
    if len(data) != length:
        raise MalformedModel(f"safetensors header: {len(data)} of {length} bytes")
    found = json_text.read_object(data, "safetensors header")
    if len(found) > MAX_TENSORS:
        raise MalformedModel(f"safetensors header: more than {MAX_TENSORS} tensors")
    return found


def _tensors(header: dict[str, object]) -> Iterator[tuple[Dtype, int]]:
    for name, entry in header.items():
        if name == _METADATA:
            continue
        if not isinstance(entry, dict):
            raise MalformedModel(f"{name[:80]}: not an object")
        kind = numbers.text(entry, "dtype")
        if kind in _NOT_WEIGHTS:
            continue
        if kind not in _DTYPES:
            raise MalformedModel(f"{name[:80]}: dtype: {kind[:20]!r} is unknown")
        yield _DTYPES[kind], _elements(name, entry)


def _elements(name: str, entry: dict[str, object]) -> int:
    shape = entry.get("shape")
    if not isinstance(shape, list) or len(shape) > _MAX_DIMENSIONS:
        raise MalformedModel(f"{name[:80]}: shape: not a list of at most {_MAX_DIMENSIONS} numbers")
    sizes = [numbers.whole({"shape": size}, "shape", numbers.MAX_ELEMENTS, least=0) for size in shape]
    return prod(sizes)
