"""A graph of ONNX as stages: which tensors autograd keeps for each operation.

What an operation keeps is that of PyTorch's derivatives: matrix products and
convolutions their inputs, batch and layer norm their input, ReLU, softmax, sigmoid and tanh their output, other
functions of one tensor their input. A tensor that several operations keep counts once.
"""

from collections.abc import Iterator, Mapping
from math import prod
from typing import Final

from vgpu.workloads.estimate.plan import EstimatePlan
from vgpu.workloads.estimate.readers.onnx_file import Graph, OnnxOperation
from vgpu.workloads.estimate.stages import ModelStage, StagedModel

_KEEP_INPUTS: Final = frozenset({"Conv", "ConvTranspose", "Gemm", "MatMul", "Mul", "Div", "Einsum"})
_KEEP_FIRST_INPUT: Final = frozenset(
    {"BatchNormalization", "LayerNormalization", "GroupNormalization", "InstanceNormalization", "MaxPool",
    "AveragePool",
     "GlobalAveragePool", "Gelu", "Erf", "Pow", "Log", "Abs", "LeakyRelu", "HardSwish", "Elu", "Selu", "Softplus",
     "Sin", "Cos", "ReduceMean", "ReduceL2"}
)  # fmt: skip
_KEEP_OUTPUT: Final = frozenset({"Relu", "Sigmoid", "Tanh", "Softmax", "LogSoftmax", "Sqrt", "Exp", "Reciprocal"})
_MATRICES: Final = frozenset({"Gemm", "MatMul"})
_INDEX_BYTES: Final = 8


def build(graph: Graph, plan: EstimatePlan, name: str, given: Mapping[str, int]) -> StagedModel:
    """Return a graph for a plan; `given` are the sizes that the file names only. Raises MalformedModel."""
    known = {"batch": plan.batch, "batch_size": plan.batch, "N": plan.batch, **_usual(graph, plan), **given}
    counted: set[str] = set()
    owners: set[str] = set()
    stages = [_stage(node, graph, known, counted, owners) for node in graph.nodes]
    left = graph.parameters - sum(stage.parameters for stage in stages)
    rest = [ModelStage("other weights", parameters=left)] if left else []
    return StagedModel(name, [*stages, *rest], 0, _assumed(known))


def _usual(graph: Graph, plan: EstimatePlan) -> dict[str, int]:
    """Return sizes that exporters name freely: an input's first is the batch, its second of two the sequence."""
    found: dict[str, int] = {}
    for name in graph.inputs:
        shape = graph.shapes.get(name, ())
        if shape and isinstance(shape[0], str):
            found[shape[0]] = plan.batch
        if len(shape) == 2 and isinstance(shape[1], str):  # noqa: PLR2004 - samples and tokens
            found.setdefault(shape[1], plan.sequence)
    return found


def _assumed(known: Mapping[str, int]) -> tuple[str, ...]:
    return ("sizes: " + ", ".join(f"{name}={size}" for name, size in sorted(known.items())[:20]),)


def _stage(
    node: OnnxOperation, graph: Graph, known: Mapping[str, int], counted: set[str], owners: set[str]
) -> ModelStage:
    stored = counted | graph.weights.keys() | graph.constants
    kept = [name for name in dict.fromkeys(_kept(node)) if name not in stored]
    counted.update(kept)
    own = [name for name in node.inputs if name in graph.weights and name not in owners]
    owners.update(own)
    saved = sum(graph.elements(name, known) for name in kept if name in graph.shapes or _matters(node))
    indices = graph.elements(node.outputs[0], known) * _INDEX_BYTES if node.op == "MaxPool" else 0
    moment = graph.elements(node.outputs[0], known) if node.outputs and node.outputs[0] in graph.shapes else 0
    return ModelStage(
        name=node.op,
        parameters=sum(prod(graph.weights[name]) for name in own),
        saved=saved,
        saved_bytes=indices,
        forward=moment,
        backward=2 * moment,
        flops=_flops(node, graph, known, moment),
    )


def _kept(node: OnnxOperation) -> Iterator[str]:
    if node.op in _KEEP_INPUTS:
        yield from (name for name in node.inputs if name)
    elif node.op in _KEEP_FIRST_INPUT:
        yield from node.inputs[:1]
    elif node.op in _KEEP_OUTPUT:
        yield from node.outputs[:1]


def _matters(node: OnnxOperation) -> bool:
    """Whether a missing shape is an error: it is not for scalars and masks of small operations."""
    return node.op not in {"Mul", "Div", "Pow", "Sqrt"}


def _flops(node: OnnxOperation, graph: Graph, known: Mapping[str, int], outputs: int) -> int:
    """Return two FLOPs for each multiplication and addition of matrix products and convolutions."""
    weight = next((graph.weights[name] for name in node.inputs[1:2] if name in graph.weights), None)
    if node.op == "Conv" and weight:
        return 2 * outputs * prod(weight[1:])
    if node.op in _MATRICES and node.inputs and node.inputs[0] in graph.shapes:
        return 2 * outputs * graph.width(node.inputs[0], known)
    return 0
