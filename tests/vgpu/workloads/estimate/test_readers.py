"""Files of models: what they say, and how hostile ones are refused."""

import contextlib
import io
import json
import os
import struct
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.vgpu.workloads import mutations
from tests.vgpu.workloads.estimate import onnx_bytes
from vgpu.domain.errors import MalformedError, MalformedModel
from vgpu.workloads.estimate import graph, memory, perceptron, source
from vgpu.workloads.estimate.plan import MAX_WIDTH, Dtype, EstimatePlan
from vgpu.workloads.estimate.readers import onnx_file, safetensors, transformers_config
from vgpu.workloads.estimate.readers.safetensors import StoredWeights
from vgpu.workloads.estimate.source import ModelSource

if TYPE_CHECKING:
    from collections.abc import Callable


def file_of(header: object, length: int | None = None) -> bytes:
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text


def tensor(shape: object, dtype: object = "BF16") -> dict[str, object]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [0, 1]}


def test_safetensors() -> None:
    header = {
        "a": tensor([4096, 4096]),
        "b": tensor([3], "F32"),
        "c": tensor([7], "I64"),
        "__metadata__": {"format": "pt"},
    }
    assert safetensors.read(io.BytesIO(file_of(header))) == StoredWeights(4096 * 4096 + 3, Dtype.BF16)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "header: the file is shorter than 8 bytes"),
        (b"\xff" * 8, "a length of 18446744073709551615 bytes"),
        (file_of({}, 0), "a length of 0 bytes"),
        (file_of({}, 100), "2 of 100 bytes"),
        (file_of([]), "not a JSON object"),
        (struct.pack("<Q", 3) + b"{a}", "not JSON"),
        (struct.pack("<Q", 200_000) + b'{"a":' + b"[" * 199_995, "not JSON"),
        (file_of({}), "0 parameters"),
        (file_of({"a": 1}), "a: not an object"),
        (file_of({"a": tensor([1], "Q9")}), "a: dtype: 'Q9' is unknown"),
        (file_of({"a": tensor([1], 5)}), "dtype: 5 is not a text"),
        (file_of({"a": tensor("big")}), "a: shape: not a list"),
        (file_of({"a": tensor([-1])}), "shape: -1 is not a whole number"),
        (file_of({"a": tensor([1.5])}), "shape: 1.5 is not a whole number"),
        (file_of({"a": tensor([True])}), "shape: True is not a whole number"),
        (file_of({"a": tensor([10**14, 10**14])}), "parameters"),
        (file_of({"a": tensor([1] * 17)}), "a: shape: not a list of at most 16"),
    ],
)
def test_safetensors_that_cannot_be_read(data: bytes, says: str) -> None:
    with pytest.raises(MalformedModel, match=says):
        safetensors.read(io.BytesIO(data))


LLAMA: dict[str, object] = {
    "model_type": "llama",
    "hidden_size": 64,
    "num_attention_heads": 4,
    "num_hidden_layers": 2,
    "intermediate_size": 128,
    "vocab_size": 100,
}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"model_type": "marsian"}, "model_type: 'marsian' is unknown; known are bert"),
        ({"model_type": None}, "model_type: missing"),
        ({"hidden_size": None}, "hidden_size: missing"),
        ({"hidden_size": "64"}, "hidden_size: '64' is not a whole number"),
        ({"hidden_size": 10**12}, "hidden_size: 1000000000000 is not a whole number from 1 to 100000000"),
        ({"num_hidden_layers": 10**6}, "num_hidden_layers: 1000000 is not"),
        ({"model_type": "gpt2", "n_embd": 4, "n_head": 8}, "heads: 8 heads of a hidden size of 4"),
        ({"num_key_value_heads": 3}, "num_key_value_heads: 3 does not divide 4 heads"),
        ({"hidden_act": "swoosh"}, "activation: 'swoosh' is unknown"),
        ({"tie_word_embeddings": "yes"}, "tie_word_embeddings: 'yes' is not true or false"),
        ({"model_type": "resnet", "hidden_sizes": [], "depths": []}, "hidden_sizes: not a list"),
        ({"model_type": "resnet", "hidden_sizes": [1, 2], "depths": [1]}, "depths: 1 numbers"),
    ],
)
def test_a_config_that_cannot_be_read(change: dict[str, object], says: str) -> None:
    with pytest.raises(MalformedModel, match=says):
        transformers_config.read(json.dumps({**LLAMA, **change}).encode())


def test_a_config_that_is_too_large_or_too_deep() -> None:
    with pytest.raises(MalformedModel, match="more than 4 MiB"):
        transformers_config.read(b" " * (transformers_config.MAX_BYTES + 1))
    deep = json.dumps(LLAMA)[:-1] + ', "x": ' + "[" * 50_000 + "]" * 50_000 + "}"
    assert transformers_config.read(deep.encode()).name == "llama"


def onnx_graph(data: bytes) -> onnx_file.Graph:
    return onnx_file.read(io.BytesIO(data))


def test_onnx_counts_what_a_perceptron_of_numbers_counts() -> None:
    plan = EstimatePlan(batch=8)
    read = graph.build(onnx_graph(onnx_bytes.perceptron()), plan, "a.onnx", {})
    twin = perceptron.build([16, 32, 4], plan)
    assert read.parameters == twin.parameters
    assert read.forward_flops == twin.forward_flops
    loss = twin.stages[-1]
    wanted = memory.estimate(twin, plan).activations - loss.saved_bytes - loss.held_bytes
    assert memory.estimate(read, plan).activations == wanted


def test_onnx_without_shapes_and_with_sizes_of_other_names() -> None:
    with pytest.raises(MalformedModel, match=r"no shape of tensor 'r'; run onnx\.shape_inference"):
        graph.build(onnx_graph(onnx_bytes.perceptron(shapes=False)), EstimatePlan(), "a.onnx", {})
    made = onnx_graph(onnx_bytes.perceptron())
    made.shapes["r"] = ("unk__1", 32)
    with pytest.raises(MalformedModel, match="'unk__1' is not known; give --dim unk__1=N"):
        graph.build(made, EstimatePlan(), "a.onnx", {})
    assert graph.build(made, EstimatePlan(), "a.onnx", {"unk__1": 2}).stages[1].saved == 64


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "no nodes; not an ONNX file"),
        (b"<html>", "wire type|does not end|are left"),
        (b"\x80" * 20, "does not end"),
        (onnx_bytes.data(7, b"\x0a\xff\xff\xff\xff\x7f"), "bytes, but .* are left"),
        (onnx_bytes.number(7, 3), "field 7 is a number instead of bytes"),
        (onnx_bytes.model(onnx_bytes.node("x" * 5000, [], [])), "a name of 5000 bytes"),
        (onnx_bytes.model(onnx_bytes.weight("w", [10**14, 10])), "more than 100000000000000 elements"),
        (onnx_bytes.model(onnx_bytes.weight("w", [1] * 17)), "at most 16 sizes"),
        (onnx_bytes.model(onnx_bytes.weight("w", [2**64 - 1])), "at most 16 sizes from 0"),
    ],
)
def test_onnx_that_cannot_be_read(data: bytes, says: str) -> None:
    with pytest.raises(MalformedModel, match=says):
        onnx_graph(data)


@pytest.mark.heavy
def test_onnx_with_more_text_than_is_kept() -> None:
    long = [onnx_bytes.node("Add", ["x" * 4000] * 100, []) for _ in range(200)]
    with pytest.raises(MalformedModel, match="names of more than 64 MiB"):
        onnx_graph(onnx_bytes.model(*long))


@given(st.binary(max_size=64))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    header = struct.pack("<Q", len(data)) + data
    readers: list[Callable[[], object]] = [
        lambda: onnx_graph(onnx_bytes.data(7, data)),
        lambda: safetensors.read(io.BytesIO(header)),
        lambda: transformers_config.read(data),
    ]
    for read in readers:
        with contextlib.suppress(MalformedModel):
            read()


CONFIGS = [
    json.dumps(LLAMA | change).encode()
    for change in (
        {},
        {"model_type": "mixtral", "sliding_window": 4096},
        {"model_type": "gpt2", "n_embd": 64},
        {"model_type": "bert", "max_position_embeddings": 512},
        {"model_type": "resnet", "hidden_sizes": [256, 512], "depths": [3, 4]},
    )
]
PLANS = st.builds(
    EstimatePlan,
    training=st.booleans(),
    batch=st.sampled_from([1, MAX_WIDTH]),
    sequence=st.sampled_from([1, MAX_WIDTH]),
    dtype=st.sampled_from(Dtype),
)


@given(mutations.of(*CONFIGS), PLANS)
def test_a_damaged_config_is_estimated_or_refused(data: bytes, plan: EstimatePlan) -> None:
    with contextlib.suppress(MalformedModel):
        found = ModelSource("a", shape=transformers_config.read(data))
        assert memory.estimate(found.build(plan, {}), plan).total > 0


@given(mutations.of(file_of({"a": tensor([40, 96]), "b": tensor([3], "F32")})), PLANS)
def test_a_damaged_header_of_safetensors_is_estimated_or_refused(data: bytes, plan: EstimatePlan) -> None:
    with contextlib.suppress(MalformedModel):
        found = ModelSource("a", weights=safetensors.read(io.BytesIO(data)))
        assert memory.estimate(found.build(plan, {}), plan).total > 0


@given(mutations.of(onnx_bytes.perceptron()), PLANS)
def test_a_damaged_graph_is_estimated_or_refused(data: bytes, plan: EstimatePlan) -> None:
    with contextlib.suppress(MalformedModel):
        found = ModelSource("a", graph=onnx_graph(data))
        assert memory.estimate(found.build(plan, {}), plan).total > 0


def test_a_folder_with_weights_counts_these(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(LLAMA))
    for name in ("model-1.safetensors", "model-2.safetensors"):
        (tmp_path / name).write_bytes(file_of({name: tensor([100, 1000])}))
    found = source.read(tmp_path)
    assert found.dtype is Dtype.BF16
    assert found.build(EstimatePlan(), {}).parameters == 200_000


def test_what_is_no_file_of_a_model(tmp_path: Path) -> None:
    with pytest.raises(MalformedError, match=r"has no config\.json"):
        source.read(tmp_path)
    with pytest.raises(MalformedError, match="No such file"):
        source.read(tmp_path / "config.json")
    with pytest.raises(MalformedError, match=r"model\.bin: No such file"):
        source.read(tmp_path / "model.bin")
    (tmp_path / "model.bin").touch()
    with pytest.raises(MalformedError, match=r"model\.bin: not a folder, config\.json"):
        source.read(tmp_path / "model.bin")
    os.mkfifo(tmp_path / "config.json")
    with pytest.raises(MalformedError, match="not a regular file"):
        source.read(tmp_path / "config.json")
