"""Where a model comes from: a file or folder of a model, widths of a perceptron, or numbers."""

import re
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from vgpu.adapters import given_file
from vgpu.domain.errors import MalformedError
from vgpu.workloads.estimate import convolution, from_numbers, graph, perceptron, transformer
from vgpu.workloads.estimate.from_numbers import Numbers
from vgpu.workloads.estimate.plan import Dtype, EstimatePlan
from vgpu.workloads.estimate.readers import onnx_file, safetensors, transformers_config
from vgpu.workloads.estimate.readers.onnx_file import Graph
from vgpu.workloads.estimate.readers.safetensors import StoredWeights
from vgpu.workloads.estimate.readers.transformers_config import Shape
from vgpu.workloads.estimate.stages import ModelStage, StagedModel
from vgpu.workloads.estimate.transformer import Transformer

_MAX_FILES: Final = 1000  # of safetensors in a folder
_SIZE: Final = re.compile(r"\d+(\.\d+)?[kmbt]", re.IGNORECASE)
_CONFIG: Final = "config.json"


@dataclass(frozen=True, slots=True)
class ModelSource:
    """What was read of a model, before a plan says how it is used."""

    name: str
    shape: Shape | None = None
    weights: StoredWeights | None = None
    graph: Graph | None = None
    widths: Sequence[int] = ()
    numbers: Numbers = field(default_factory=Numbers)
    dtype: Dtype | None = None

    @property
    def is_transformer(self) -> bool:
        """Whether the model has blocks that can be computed again, and layers that GPUs can share."""
        return self.graph is None and not self.widths and not isinstance(self.shape, convolution.ResNet)

    def build(self, plan: EstimatePlan, sizes: Mapping[str, int]) -> StagedModel:
        """Return the model for a plan; `sizes` are those that an ONNX file only names.

        Raises MalformedModel and ValueError.
        """
        if not self.is_transformer and (plan.tensor_parallel > 1 or plan.checkpointing):
            option = "--checkpointing" if plan.checkpointing else "--tensor-parallel"
            raise ValueError(f"{option}: only known of transformers, not of {self.name}")
        if self.graph is not None:
            return graph.build(self.graph, plan, self.name, sizes)
        if self.widths:
            return perceptron.build(self.widths, plan)
        if isinstance(self.shape, convolution.ResNet):
            return convolution.build(self.shape, plan)
        return self._transformer(plan)

    def _transformer(self, plan: EstimatePlan) -> StagedModel:
        if isinstance(self.shape, Transformer):
            model = transformer.build(replace(self.shape, name=self.name), plan)
        else:
            known = self.numbers if self.weights is None else replace(self.numbers, parameters=self.weights.parameters)
            shape, assumed = from_numbers.decoder(known)
            model = transformer.build(replace(shape, name=self.name), plan, assumed)
        total = self.weights.parameters if self.weights else self.numbers.parameters
        return _with_parameters(model, total // plan.tensor_parallel) if total else model


def _with_parameters(model: StagedModel, total: int) -> StagedModel:
    """Return a model whose parameters are exactly these; the difference is spread over the stages."""
    own = model.parameters
    stages = [replace(stage, parameters=stage.parameters * total // own) for stage in model.stages]
    left = total - sum(stage.parameters for stage in stages)
    return replace(model, stages=[ModelStage("rounding", parameters=left), *stages])


def read(path: Path) -> ModelSource:
    """Read a file of a model, or a folder with config.json and safetensors. Raises MalformedError, with the file."""
    try:
        is_folder = stat.S_ISDIR(path.stat().st_mode)
    except OSError as error:
        raise MalformedError(f"{path}: {error.strerror}; {_hint(str(path))}") from error
    if is_folder:
        return _folder(path)
    if path.suffix == ".safetensors":
        return _folder_of(path.name, path.parent / _CONFIG, [path])
    if path.suffix == ".onnx":
        with given_file.reading(path) as file:
            found = onnx_file.read(file)
        return ModelSource(path.name, graph=found, dtype=found.dtype)
    if path.suffix == ".json":
        named = path.resolve().parent if path.name == _CONFIG else path
        return replace(_config(path), name=named.name)
    raise MalformedError(f"{path}: not a folder, config.json, .safetensors or .onnx")


def _hint(name: str) -> str:
    """Say what may have been meant by a name that is no file's."""
    if _SIZE.fullmatch(name):
        return f"for a decoder of that size write --params {name}"
    return "nothing is downloaded: give the folder with the model's config.json, or --params with its size"


def _folder(path: Path) -> ModelSource:
    files = sorted(path.glob("*.safetensors"))
    if not files and not (path / _CONFIG).exists():
        raise MalformedError(f"{path}: has no config.json and no .safetensors")
    if len(files) > _MAX_FILES:
        raise MalformedError(f"{path}: more than {_MAX_FILES} files of safetensors")
    return _folder_of(path.resolve().name, path / _CONFIG, files)


def _folder_of(name: str, config: Path, files: Sequence[Path]) -> ModelSource:
    base = replace(_config(config), name=name) if config.exists() else ModelSource(name)
    if not files:
        return base
    found = [_weights(file) for file in files]
    weights = StoredWeights(sum(stored.parameters for stored in found), found[0].dtype)
    return replace(base, weights=weights, dtype=weights.dtype)


def _config(path: Path) -> ModelSource:
    with given_file.reading(path) as file:
        data = file.read(transformers_config.MAX_BYTES + 1)
        shape = transformers_config.read(data)
        return ModelSource(shape.name, shape=shape, dtype=transformers_config.dtype(data))


def _weights(path: Path) -> StoredWeights:
    with given_file.reading(path) as file:
        return safetensors.read(file)
