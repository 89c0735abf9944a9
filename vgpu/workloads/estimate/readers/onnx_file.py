"""ONNX: nodes, weights' shapes and tensors' shapes of a graph (protobuf schema of github.com/onnx/onnx).

Field numbers: ModelProto.graph 7; GraphProto.node 1, initializer 5, input 11, output 12, value_info 13; NodeProto.input
1, output 2, op_type 4; TensorProto.dims 1, data_type 2, name 8; ValueInfoProto.name 1, type 2; TypeProto.tensor_type 1;
TypeProto.Tensor.shape 2; TensorShapeProto.dim 1; Dimension.dim_value 1, dim_param 2. Subgraphs of nodes (If, Loop) are
not read.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import BinaryIO, Final

from vgpu.domain.errors import MalformedModel
from vgpu.workloads.estimate.plan import Dtype
from vgpu.workloads.estimate.readers import numbers
from vgpu.workloads.estimate.readers.protobuf import Message, ProtobufField

MAX_NODES: Final = 200_000
_MAX_DIMENSIONS: Final = 16
_TYPES: Final = {1: Dtype.FP32, 10: Dtype.FP16, 16: Dtype.BF16}  # TensorProto.DataType; others are indices and masks

Dimension = int | str  # a size, or the name of one that is given when the graph runs


@dataclass(frozen=True, slots=True)
class OnnxOperation:
    """An operation, with the names of its tensors."""

    op: str
    inputs: Sequence[str]
    outputs: Sequence[str]


@dataclass(slots=True)
class Graph:
    """A graph.

    Attributes:
        weights: shapes of trained tensors, by name.
        constants: names of other stored tensors, such as shapes and indices.
        shapes: shapes of the tensors that nodes exchange, as far as the file says.
        inputs: names of what a caller gives.
    """

    nodes: list[OnnxOperation] = field(default_factory=list)
    weights: dict[str, tuple[int, ...]] = field(default_factory=dict)
    constants: set[str] = field(default_factory=set)
    shapes: dict[str, tuple[Dimension, ...]] = field(default_factory=dict)
    inputs: list[str] = field(default_factory=list)
    types: dict[Dtype, int] = field(default_factory=dict)

    @property
    def parameters(self) -> int:
        """Trained elements."""
        return sum(prod(shape) for shape in self.weights.values())

    @property
    def dtype(self) -> Dtype:
        """The type of most weights."""
        return max(self.types, key=lambda dtype: self.types[dtype], default=Dtype.FP32)

    def elements(self, name: str, given: Mapping[str, int]) -> int:
        """Return the elements of a tensor, with sizes that are `given` by name. Raises MalformedModel."""
        if name not in self.shapes:
            raise MalformedModel(
                f"value_info: no shape of tensor {name[:60]!r}; run onnx.shape_inference.infer_shapes first"
            )
        total = prod(_size(name, size, given) for size in self.shapes[name])
        if total > numbers.MAX_ELEMENTS:
            raise MalformedModel(f"value_info: tensor {name[:60]!r} has more than {numbers.MAX_ELEMENTS} elements")
        return total

    def width(self, name: str, given: Mapping[str, int]) -> int:
        """Return the last size of a tensor whose shape is known. Raises MalformedModel."""
        return _size(name, self.shapes[name][-1], given) if self.shapes[name] else 1


def _size(name: str, size: Dimension, given: Mapping[str, int]) -> int:
    if isinstance(size, int):
        return size
    if size not in given:
        raise MalformedModel(
            f"value_info: tensor {name[:60]!r}: the size {size[:40]!r} is not known; give --dim {size[:40]}=N"
        )
    return given[size]


def read(file: BinaryIO) -> Graph:
    """Read the graph of an ONNX file. Raises MalformedModel."""
    message, graph = Message(file), Graph()
    for part in message.fields(message.whole):
        if part.number == 7:  # noqa: PLR2004 - ModelProto.graph
            _graph(message, part, graph)
    if not graph.nodes:
        raise MalformedModel("ONNX: graph: no nodes; not an ONNX file")
    return graph


def _graph(message: Message, whole: ProtobufField, graph: Graph) -> None:
    readers = {1: _node, 5: _initializer, 11: _input, 12: _value, 13: _value}
    for part in message.message(whole):
        if part.number in readers:
            readers[part.number](message, part, graph)
        if len(graph.nodes) > MAX_NODES:
            raise MalformedModel(f"ONNX: graph.node: more than {MAX_NODES}")


def _node(message: Message, whole: ProtobufField, graph: Graph) -> None:
    inputs, outputs, op = [], [], ""
    for part in message.message(whole):
        match part.number:
            case 1:
                inputs.append(message.text(part))
            case 2:
                outputs.append(message.text(part))
            case 4:
                op = message.text(part)
    graph.nodes.append(OnnxOperation(op, inputs, outputs))


def _initializer(message: Message, whole: ProtobufField, graph: Graph) -> None:
    shape: list[int] = []
    name, kind = "", 0
    for part in message.message(whole):
        match part.number:
            case 1:
                shape += _sizes(message, part)
            case 2 if isinstance(part.value, int):
                kind = part.value
            case 8:
                name = message.text(part)
    if kind not in _TYPES:
        graph.constants.add(name)
        return
    graph.weights[name] = tuple(shape)
    graph.types[_TYPES[kind]] = graph.types.get(_TYPES[kind], 0) + prod(shape)
    if sum(graph.types.values()) > numbers.MAX_ELEMENTS:
        raise MalformedModel(f"initializer {name[:60]!r}: more than {numbers.MAX_ELEMENTS} elements")


def _sizes(message: Message, field: ProtobufField) -> list[int]:
    sizes: list[int] = []
    for size in message.integers(field):
        if len(sizes) >= _MAX_DIMENSIONS or not 0 <= size <= numbers.MAX_ELEMENTS:
            raise MalformedModel(f"initializer: dims: at most {_MAX_DIMENSIONS} sizes from 0 to {numbers.MAX_ELEMENTS}")
        sizes.append(size)
    return sizes


def _input(message: Message, whole: ProtobufField, graph: Graph) -> None:
    name = _value(message, whole, graph)
    if name not in graph.weights:
        graph.inputs.append(name)


def _value(message: Message, whole: ProtobufField, graph: Graph) -> str:
    name, shape = "", None
    for part in message.message(whole):
        if part.number == 1:
            name = message.text(part)
        elif part.number == 2:  # noqa: PLR2004 - ValueInfoProto.type
            shape = _shape(message, part)
    if shape is not None:
        graph.shapes[name] = shape
    return name


def _shape(message: Message, kind: ProtobufField) -> tuple[Dimension, ...] | None:
    """Return the shape in TypeProto.tensor_type.shape; None where there is none."""
    for tensor in message.message(kind):
        if tensor.number != 1:
            continue
        for part in message.message(tensor):
            if part.number == 2:  # noqa: PLR2004 - TypeProto.Tensor.shape
                return tuple(_dimension(message, size) for size in message.message(part) if size.number == 1)
    return None


def _dimension(message: Message, whole: ProtobufField) -> Dimension:
    for part in message.message(whole):
        if part.number == 1 and isinstance(part.value, int) and 0 <= part.value <= numbers.MAX_ELEMENTS:
            return part.value
        if part.number == 2:  # noqa: PLR2004 - Dimension.dim_param
            return message.text(part)
    return "?"
