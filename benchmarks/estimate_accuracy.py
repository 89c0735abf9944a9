"""How close `vgpu estimate` is to PyTorch: parameters, gradients, optimizer states, saved activations, peak, NVML.

    python -m benchmarks.estimate_accuracy             # without a GPU: on tensors without data, in half an hour
    python -m benchmarks.estimate_accuracy --cuda      # with one: torch.cuda.max_memory_allocated and NVML too
    python -m benchmarks.estimate_accuracy --json FILE # where the figures go

Needs PyTorch, and with --cuda nvidia-ml-py.
"""

import argparse
import gc
import importlib
import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.estimate import models
from benchmarks.record import recorder, result
from benchmarks.record.recorder import ResultRecorder
from vgpu.workloads.estimate import convolution, memory, perceptron, transformer
from vgpu.workloads.estimate.plan import Attention, Dtype, EstimatePlan, Optimizer
from vgpu.workloads.estimate.readers import transformers_config
from vgpu.workloads.estimate.stages import StagedModel

torch: Any = models.torch
TYPES = {Dtype.FP32: torch.float32, Dtype.BF16: torch.bfloat16}
OPTIMIZERS: dict[Optimizer, Callable[[Any], Any]] = {
    Optimizer.SGD: lambda p: torch.optim.SGD(p, lr=1e-3),
    Optimizer.MOMENTUM: lambda p: torch.optim.SGD(p, lr=1e-3, momentum=0.9),
    Optimizer.ADAMW: lambda p: torch.optim.AdamW(p, lr=1e-4),
    Optimizer.ADAMW_FUSED: lambda p: torch.optim.AdamW(p, lr=1e-4, fused=True),
}
GOAL = 0.10  # of the measured bytes
ASSUMED = ("context", "idle", "workspaces")  # parts of NVML's figure, which are compared as a sum
ON_CARD = (Optimizer.MOMENTUM, Optimizer.ADAMW, Optimizer.ADAMW_FUSED)


@dataclass(frozen=True, slots=True)
class EstimateCase:
    name: str
    estimate: StagedModel
    plan: EstimatePlan
    build: Callable[[], Any]
    inputs: Callable[[str], Any]
    classes: int


@dataclass(frozen=True, slots=True)
class AccuracyRow:
    """One comparison in bytes; `error` is estimate / measured - 1."""

    case: str
    what: str
    estimated: int
    measured: int

    @property
    def error(self) -> float:
        return self.estimated / self.measured - 1 if self.measured else 0.0

    def as_figure(self) -> result.ResultRow:
        """The error in percent, as a row of a result."""
        has_goal = self.what in ("peak", "NVML")
        fault = f"{100 * self.error:+.1f} %" if has_goal and abs(self.error) > GOAL else ""
        details = {"estimated": self.estimated, "measured": self.measured, "torch": str(torch.__version__)}
        goal = f"{100 * GOAL:g} %" if has_goal else ""
        name = result.slug(self.case, self.what)
        return result.ResultRow(id=name, value=100 * self.error, unit="%", goal=goal, fault=fault, details=details)


def cases() -> Iterator[EstimateCase]:
    """Every model, with two batch sizes."""
    for batch in (64, 1024):
        plan = EstimatePlan(batch=batch, sequence=1)
        yield EstimateCase(
            f"MLP b{batch}",
            perceptron.build(models.MLP, plan),
            plan,
            lambda: models.perceptron(models.MLP),
            _vectors(batch),
            1000,
        )
    for batch in (16, 64):
        plan = EstimatePlan(batch=batch, sequence=1)
        shape = transformers_config.read(
            json.dumps({"model_type": "resnet", "layer_type": "bottleneck", **models.RESNET_50}).encode()
        )
        assert isinstance(shape, convolution.ResNet)
        yield EstimateCase(f"ResNet-50 b{batch}", convolution.build(shape, plan), plan, _resnet, _images(batch), 1000)
    for name, sizes in (("GPT-2 124M", models.GPT2), ("GPT-2 355M", models.GPT2_MEDIUM)):
        for batch in (2, 8):
            for attention in Attention:
                for checkpointing in (False, True):
                    plan = EstimatePlan(batch=batch, sequence=1024, attention=attention, checkpointing=checkpointing)
                    yield from _gpts(name, sizes, plan)
            yield from _gpts(name, sizes, EstimatePlan(training=False, batch=batch, sequence=1024))


def _gpts(name: str, sizes: dict[str, int], plan: EstimatePlan) -> Iterator[EstimateCase]:
    fields = {
        "model_type": "gpt2",
        "activation_function": "gelu",
        "resid_pdrop": 0,
        "embd_pdrop": 0,
        "attn_pdrop": 0,
        **sizes,
    }
    shape = transformers_config.read(json.dumps(fields).encode())
    assert isinstance(shape, transformer.Transformer)
    for dtype in TYPES:
        typed = replace(plan, dtype=dtype, compute=dtype)
        kind = f"{plan.attention}{' checkpointing' * plan.checkpointing}" if plan.training else "decoding"
        label = f"{name} {dtype} b{plan.batch} {kind}"
        eager = plan.attention is Attention.EAGER
        build = partial(models.Gpt, sizes, eager=eager, checkpointing=plan.checkpointing)
        yield EstimateCase(
            label,
            transformer.build(shape, typed),
            typed,
            build,
            _tokens(plan.batch),
            models.VOCABULARY,
        )


def _resnet() -> Any:
    return models.resnet(models.RESNET_50["hidden_sizes"], models.RESNET_50["depths"])


def _vectors(batch: int) -> Callable[[str], Any]:
    return lambda device: torch.empty(batch, models.MLP[0], device=device).normal_()


def _images(batch: int) -> Callable[[str], Any]:
    return lambda device: torch.empty(batch, 3, models.IMAGE, models.IMAGE, device=device).normal_()


def _tokens(batch: int) -> Callable[[str], Any]:
    return lambda device: torch.zeros(batch, models.POSITIONS, dtype=torch.long, device=device)


def loss_of(case: EstimateCase, model: Any, inputs: Any) -> tuple[Any, Any]:
    """The loss and the logits, which a training loop holds too."""
    logits = model(inputs)
    flat = logits.view(-1, case.classes)
    targets = torch.zeros(flat.shape[0], dtype=torch.long, device=flat.device)
    return torch.nn.functional.cross_entropy(flat.float(), targets), logits


def without_card(case: EstimateCase) -> Iterator[AccuracyRow]:
    """What autograd saves, on tensors without data."""
    fake = importlib.import_module("torch._subclasses.fake_tensor").FakeTensorMode()
    torch.set_default_dtype(TYPES[case.plan.dtype])
    with fake:
        model = case.build()
        inputs = case.inputs("cpu")
        parameters = list(model.parameters())
        size = sum(parameter.nbytes for parameter in parameters)
        yield AccuracyRow(case.name, "parameters", case.plan.dtype.size(case.estimate.parameters), size)
        if not case.plan.training:
            yield _cache_row(case, model, inputs)
            return
        saved: dict[int, Any] = {}
        own = {parameter.untyped_storage()._cdata for parameter in parameters}  # noqa: SLF001 - a storage's identity

        def keep(tensor: Any) -> Any:
            storage = tensor.untyped_storage()
            if storage._cdata not in own:  # noqa: SLF001
                saved[storage._cdata] = storage  # noqa: SLF001
            return tensor

        with (
            torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor)
            if not case.plan.checkpointing
            else nullcontext()
        ):
            loss, logits = loss_of(case, model, inputs)
        if not case.plan.checkpointing:
            saved[logits.untyped_storage()._cdata] = logits.untyped_storage()  # noqa: SLF001
            kept = sum(storage.nbytes() for storage in saved.values())
            yield AccuracyRow(
                case.name, "saved activations", memory.estimate(case.estimate, case.plan).activations, kept
            )
        loss.backward()
        gradients = memory.estimate(case.estimate, case.plan).gradients
        yield AccuracyRow(case.name, "gradients", gradients, sum(parameter.grad.nbytes for parameter in parameters))
        yield from _states(case, parameters)
    yield from _peaks(case)


def _peaks(case: EstimateCase) -> Iterator[AccuracyRow]:
    """The most that two training steps use at once, as PyTorch's MemTracker counts tensors without data."""
    fake = importlib.import_module("torch._subclasses.fake_tensor")
    tools = importlib.import_module("torch.distributed._tools.mem_tracker")
    for name in (Optimizer.SGD, Optimizer.MOMENTUM, Optimizer.ADAMW):
        with fake.FakeTensorMode():
            model, inputs = case.build(), case.inputs("cpu")
            optimizer, tracker = OPTIMIZERS[name](model.parameters()), tools.MemTracker()
            tracker.track_external(model, optimizer)
            with tracker:
                for _ in range(2):
                    tracker.reset_mod_stats()
                    _step(case, model, optimizer, inputs)
        (found,) = (
            snapshot for device, snapshot in tracker.get_tracker_snapshot("peak").items() if device.type == "cpu"
        )
        total = next(size for kind, size in found.items() if str(kind).endswith("Total"))
        wanted = memory.estimate(case.estimate, replace(case.plan, optimizer=name)).peak
        yield AccuracyRow(case.name, f"peak with {name}", wanted, total)


def _cache_row(case: EstimateCase, model: Any, inputs: Any) -> AccuracyRow:
    with torch.no_grad():
        models.decode(model, inputs[:, : case.plan.sequence - 2], case.plan.sequence)
    caches = [tensor for block in model.blocks for tensor in (block.cache.k, block.cache.v)]
    wanted = memory.estimate(case.estimate, case.plan).kv_cache
    return AccuracyRow(case.name, "KV cache", wanted, sum(cache.nbytes for cache in caches))


def _states(case: EstimateCase, parameters: list[Any]) -> Iterator[AccuracyRow]:
    for name, make in OPTIMIZERS.items():
        if name is Optimizer.ADAMW_FUSED:
            continue  # has no implementation for tensors without data
        optimizer = make(parameters)
        optimizer.step()
        kept = [
            value
            for state in optimizer.state.values()
            for value in state.values()
            if torch.is_tensor(value) and value.dim()
        ]
        wanted = memory.estimate(case.estimate, replace(case.plan, optimizer=name)).optimizer
        yield AccuracyRow(case.name, f"states of {name}", wanted, sum(tensor.nbytes for tensor in kept))


def on_card(case: EstimateCase) -> Iterator[AccuracyRow]:
    """The allocator's peak, and what NVML says of this process, after three steps or some generated tokens."""
    for name in ON_CARD if case.plan.training else (Optimizer.NONE,):
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        torch.set_default_dtype(TYPES[case.plan.dtype])
        _work(case, name)
        torch.cuda.synchronize()
        found = memory.estimate(case.estimate, replace(case.plan, optimizer=name))
        label = f"{case.name} {name}" if case.plan.training else case.name
        peak, reserved, used = torch.cuda.max_memory_allocated(), torch.cuda.memory_reserved(), nvml_bytes()
        yield AccuracyRow(label, "peak", found.peak + found.libraries, peak)
        yield AccuracyRow(label, "NVML", found.total, used)
        yield AccuracyRow(label, "context", found.context, used - reserved)
        yield AccuracyRow(label, "idle", found.idle, reserved - peak)
        gc.collect()


def workspaces() -> AccuracyRow:
    """What the libraries allocate for themselves: the first product of a forward and of a backward pass."""
    model, inputs = torch.nn.Linear(64, 64, bias=False).to("cuda"), torch.ones(64, 64, device="cuda")
    before = torch.cuda.memory_allocated()
    model(inputs).sum().backward()
    model.weight.grad = None
    torch.cuda.synchronize()
    return AccuracyRow("any", "workspaces", memory.LIBRARY_BYTES, torch.cuda.memory_allocated() - before)


def _work(case: EstimateCase, name: Optimizer) -> None:
    with torch.device("cuda"):
        model, inputs = case.build(), case.inputs("cuda")
    if not case.plan.training:
        with torch.no_grad():
            models.decode(model, inputs[:, : case.plan.sequence - 16], case.plan.sequence)
        return
    optimizer = OPTIMIZERS[name](model.parameters())
    for _ in range(3):
        _step(case, model, optimizer, inputs)


def _step(case: EstimateCase, model: Any, optimizer: Any, inputs: Any) -> None:
    loss, logits = loss_of(case, model, inputs)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    del logits  # which a training loop holds until here


def nvml_bytes() -> int:
    """What NVML says that this process has on PyTorch's first card."""
    pynvml: Any = importlib.import_module("pynvml")
    pynvml.nvmlInit()
    handle = pynvml.nvmlDeviceGetHandleByUUID(f"GPU-{torch.cuda.get_device_properties(0).uuid}")
    used = {
        nvmlDeviceGetComputeRunningProcess.pid: nvmlDeviceGetComputeRunningProcess.usedGpuMemory
        for nvmlDeviceGetComputeRunningProcess in pynvml.nvmlDeviceGetComputeRunningProcesses(handle)
    }
    return int(used.get(os.getpid()) or pynvml.nvmlDeviceGetMemoryInfo(handle).used)


def _rows(only: str, *, is_on_card: bool) -> Iterator[AccuracyRow]:
    if is_on_card:
        yield workspaces()
    for case in cases():
        if only in case.name:
            yield from on_card(case) if is_on_card else without_card(case)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--cuda", action="store_true")
    parser.add_argument("--only", default="", help="a part of the cases' names")
    parser.add_argument("--json", type=Path, help=recorder.JSON_HELP)
    args = parser.parse_args()
    record = ResultRecorder(args.json, "estimate_accuracy", ("vgpu/workloads/estimate", "benchmarks/estimate"))
    rows = []
    for row in _rows(args.only, is_on_card=args.cuda):
        rows.append(row)
        record.add(row.as_figure())
        mib = f"{row.estimated / 2**20:10.1f} MiB {row.measured / 2**20:10.1f} MiB"
        sys.stdout.write(f"{row.case:45} {row.what:20} {mib} {100 * row.error:+6.1f} %\n")
    worst = max((abs(row.error) for row in rows if row.what not in ASSUMED), default=0.0)
    sys.stdout.write(f"{len(rows)} rows, largest error {100 * worst:.1f} %\n")
    sys.stdout.write(f"{record}\n")


if __name__ == "__main__":
    main()
