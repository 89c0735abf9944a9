"""`vgpu estimate`: from options to an estimate, and its tables."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.table import Table

from vgpu.cli.local.top import Output
from vgpu.domain import printable
from vgpu.domain.quantity import MIB
from vgpu.workloads.estimate import source
from vgpu.workloads.estimate.from_numbers import Numbers
from vgpu.workloads.estimate.plan import MAX_WIDTH, Dtype, EstimatePlan
from vgpu.workloads.estimate.report import EstimateReport, Fit
from vgpu.workloads.estimate.source import ModelSource

_MAX_LAYERS = 10_000
_OPTIONS = {
    "parameters": "--params",
    "layers": "--layers",
    "hidden": "--hidden",
    "heads": "--heads",
    "kv_heads": "--kv-heads",
    "feed_forward": "--ffn",
    "vocabulary": "--vocab",
}


def read(model: Path | None, mlp: str | None, numbers: Numbers) -> ModelSource:
    """Return what the options say about a model. Raises ValueError and MalformedError."""
    if mlp is not None and (model is not None or numbers != Numbers()):
        raise ValueError("--mlp: give it alone, without a file and the sizes of a decoder")
    if mlp is not None:
        return ModelSource("MLP", widths=_widths(mlp))
    return ModelSource("decoder", numbers=numbers) if model is None else _from_file(source.read(model), numbers)


def _from_file(found: ModelSource, numbers: Numbers) -> ModelSource:
    """Add sizes that the options give to weights without a config.json, whose file says only how many they are."""
    says_all = found.shape is not None or found.graph is not None
    known = [option for field, option in _OPTIONS.items() if getattr(numbers, field) is not None]
    if known and (says_all or numbers.parameters is not None):
        raise ValueError(f"{known[0]}: {found.name} says that itself")
    return replace(found, numbers=numbers)


def compute_dtype(weights: Dtype) -> Dtype:
    """Return the type of activations for a type of weights; quantised weights are computed with in bf16."""
    return weights if weights in (Dtype.FP32, Dtype.FP16, Dtype.BF16) else Dtype.BF16


def weights_dtype(asked: Dtype | None, found: ModelSource, *, is_training: bool) -> tuple[Dtype, Sequence[str]]:
    """Return the type of weights that was asked for, or that the model says; else fp32, which is told as assumed."""
    if known := asked or found.dtype:
        return known, ()
    usual = "trained" if is_training else "served"
    return Dtype.FP32, (
        f"type: weights in fp32, since nothing says another; models are often {usual} with --dtype bf16",
    )


def report(found: ModelSource, plan: EstimatePlan, sizes: Sequence[str], assumed: Sequence[str] = ()) -> EstimateReport:
    """Estimate a model; `assumed` is added to what was assumed. Raises ValueError and MalformedModel."""
    if sizes and found.graph is None:
        raise ValueError("--dim: only an ONNX file has sizes by name")
    if plan.zero and plan.data_parallel == 1:
        raise ValueError("--zero: splits over GPUs; give --data-parallel 2 or more too")
    model = found.build(plan, _sizes(sizes))
    return EstimateReport.of(replace(model, assumptions=(*model.assumptions, *assumed)), plan)


def show(report: EstimateReport, measured: int | None, output: Output, console: Console) -> None:
    """Print a report; `measured` is the peak of a run in bytes."""
    if output is Output.JSON:
        console.file.write(f"{json.dumps({**report.as_json(), 'measured': measured})}\n")
        return
    said = [f"{report.model.name}: {_parameters(report)}"]
    said += [f"assumed: {assumption}" for assumption in report.model.assumptions]
    for line in said:
        console.print(printable.line(line), highlight=False, markup=False)
    console.print(_memory_table(report, measured), _card_table(report))
    if any(fit.fits for fit in report.fits()):
        console.print("resources:\n  limits:", *(f"    {line}" for line in report.manifest), sep="\n", highlight=False)
    else:
        console.print(f"It fits no card above. {_what_helps(report.plan)}", highlight=False, soft_wrap=True)


def _what_helps(plan: EstimatePlan) -> str:
    """Say which options make the part of each GPU smaller."""
    layers = "--tensor-parallel N shares each layer over N GPUs"
    if not plan.training:
        return f"{layers}; --dtype int8 or int4 has smaller weights."
    states = "--data-parallel N --zero 3 splits weights, gradients and states of the optimizer over N GPUs"
    return f"{states}; {layers}; --checkpointing keeps fewer activations."


def _parameters(report: EstimateReport) -> str:
    """Say how many parameters a GPU holds: with ZeRO's third stage a part of those that it computes with."""
    count = report.model.parameters
    if report.plan.zero < 3:  # noqa: PLR2004 - the stage's number
        return f"{count:,} parameters on each GPU"
    held = -(-count // report.plan.data_parallel)
    return f"{count:,} parameters, of which each of {report.plan.data_parallel} GPUs holds {held:,}"


def _widths(text: str) -> list[int]:
    parts = [part.strip() for part in text.split(",", _MAX_LAYERS)]
    if len(parts) == 1 or not all(part.isdecimal() and len(part) < 10 and 0 < int(part) <= MAX_WIDTH for part in parts):  # noqa: PLR2004 - digits
        raise ValueError(f"--mlp: {text[:40]!r} is not a list of at least two widths, such as 784,4096,10")
    return [int(part) for part in parts]


def _sizes(given: Sequence[str]) -> Mapping[str, int]:
    found = {}
    for text in given:
        name, equals, size = text.rpartition("=")
        if not equals or not size.isdecimal() or len(size) > 9 or not 0 < int(size) <= MAX_WIDTH:  # noqa: PLR2004 - digits
            raise ValueError(f"--dim: {text[:40]!r} is not NAME=N")
        found[name] = int(size)
    return found


def _memory_table(report: EstimateReport, measured: int | None) -> Table:
    table = Table("MEMORY OF EACH GPU", "MiB", box=None, pad_edge=False)
    table.columns[1].justify = "right"
    for name, size in _lines(report):
        table.add_row(name, f"{size / MIB:,.0f}")
    if measured is not None:
        error = 100 * (report.memory.total / measured - 1)
        table.add_row(f"measured; the estimate differs by {error:+.1f} %", f"{measured / MIB:,.0f}")
    return table


def _lines(report: EstimateReport) -> Iterator[tuple[str, int]]:
    memory, plan = report.memory, report.plan
    yield "weights", memory.weights
    if plan.training:
        yield "gradients", memory.gradients
        yield f"states of {plan.optimizer}", memory.optimizer
        yield "activations", memory.activations
    else:
        yield "KV cache", memory.kv_cache
    yield f"peak, in {memory.at}, with {memory.moment / MIB:,.0f} MiB for a moment", memory.peak
    yield "CUDA context", memory.context
    yield "workspaces of cuBLAS", memory.libraries
    yield "idle in the allocator", memory.idle
    yield "total: the last four", memory.total


def _card_table(report: EstimateReport) -> Table:
    table = Table("CARD", "MiB", "FITS", _time_title(report.plan), box=None, pad_edge=False)
    for column in table.columns[1:]:
        column.justify = "right"
    for fit in report.fits():
        table.add_row(fit.card.name, f"{fit.card.memory_mib:,}", "yes" if fit.fits else "no", _time(fit))
    return table


def _time_title(plan: EstimatePlan) -> str:
    return "STEP TAKES AT LEAST" if plan.training else "PROMPT, THEN EACH TOKEN, TAKE AT LEAST"


def _time(fit: Fit) -> str:
    first = f"{fit.seconds * 1000:,.1f} ms"
    return first if fit.token_seconds is None else f"{first}, {fit.token_seconds * 1000:,.1f} ms"
