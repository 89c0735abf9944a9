"""A decoder from a few numbers; what is not given follows from usual proportions, and is said."""

from dataclasses import dataclass
from typing import Final

from vgpu.workloads.estimate.readers.numbers import MAX_COUNT
from vgpu.workloads.estimate.transformer import Transformer

_ASPECT: Final = 128  # hidden size / layers, of GPT-3 and LLaMA from 7 to 175 billion parameters
_WIDTH: Final = 128  # hidden sizes are multiples of it
_LARGE: Final = 2048  # hidden size from which heads have 128 elements instead of 64, as LLaMA and GPT-2
_BLOCK: Final = 12  # a block has 12 h^2 weights (Kaplan et al., 2020, table 1)


@dataclass(frozen=True, slots=True)
class Numbers:
    """What a user gives; None for the rest. `parameters` counts all of the model."""

    parameters: int | None = None
    layers: int | None = None
    hidden: int | None = None
    heads: int | None = None
    kv_heads: int | None = None
    feed_forward: int | None = None
    vocabulary: int | None = None


def decoder(numbers: Numbers) -> tuple[Transformer, tuple[str, ...]]:
    """Return a decoder with these numbers, and what was assumed. Raises ValueError."""
    if numbers.parameters is None and (numbers.hidden is None or numbers.layers is None):
        raise ValueError("nothing says how large the model is; give a file, --params, or --hidden and --layers")
    vocabulary = numbers.vocabulary or 32_000
    hidden = numbers.hidden or _hidden(numbers, vocabulary)
    layers = numbers.layers or max(1, round(_in_blocks(numbers, vocabulary, hidden) / (_BLOCK * hidden**2)))
    if layers > MAX_COUNT:
        raise ValueError(f"--hidden: {hidden} is too small for {numbers.parameters:,} parameters: {layers:,} blocks")
    head_size = hidden // numbers.heads if numbers.heads else 128 if hidden >= _LARGE else 64
    heads = numbers.heads or _multiple(hidden // head_size, numbers.kv_heads or 1)
    if numbers.heads and hidden % heads:
        raise ValueError(f"--hidden: {hidden} is not a multiple of {heads} heads")
    kv_heads = numbers.kv_heads or heads
    if heads % kv_heads:
        raise ValueError(f"--kv-heads: {kv_heads} does not divide {heads} heads")
    shape = Transformer(
        name="decoder",
        layers=layers,
        hidden=hidden,
        heads=heads,
        kv_heads=kv_heads,
        head_size=head_size,
        feed_forward=numbers.feed_forward or 4 * hidden,
        vocabulary=vocabulary,
        tied=True,
    )
    return shape, (f"shape: {layers} layers of {hidden}, {heads} heads, {kv_heads} of keys, vocabulary {vocabulary}",)


def _multiple(count: int, of: int) -> int:
    return max(1, round(count / of)) * of


def _in_blocks(numbers: Numbers, vocabulary: int, hidden: int) -> int:
    return max((numbers.parameters or 0) - vocabulary * hidden, _BLOCK * hidden**2)


def _hidden(numbers: Numbers, vocabulary: int) -> int:
    """Solve N = 12 l h^2 + V h for h, where l is given, or h / 128."""
    parameters, hidden = numbers.parameters or 0, _WIDTH
    while _size(hidden, numbers, vocabulary) < parameters:
        hidden += _WIDTH
    below = hidden - _WIDTH
    return (
        below
        if below and parameters - _size(below, numbers, vocabulary) < _size(hidden, numbers, vocabulary) - parameters
        else hidden
    )


def _size(hidden: int, numbers: Numbers, vocabulary: int) -> int:
    layers = numbers.layers or max(1, hidden // _ASPECT)
    return _BLOCK * layers * hidden**2 + vocabulary * hidden
