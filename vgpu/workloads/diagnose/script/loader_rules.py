"""Rules about PyTorch's DataLoader and the arguments of Hugging Face's Trainer."""

import ast
from collections.abc import Iterator
from typing import Final

from vgpu.workloads.diagnose.catalogue import FindingCode
from vgpu.workloads.diagnose.finding import ProgramFinding
from vgpu.workloads.diagnose.script import names, step_rules
from vgpu.workloads.diagnose.script.names import UNKNOWN, Keywords
from vgpu.workloads.diagnose.script.program import ScriptProgram, is_loader

# torch.utils.data.DataLoader's parameters, in the order in which they may be given without a name.
_PARAMETERS: Final = (
    "dataset",
    "batch_size",
    "shuffle",
    "sampler",
    "batch_sampler",
    "num_workers",
    "collate_fn",
    "pin_memory",
)
_TRAINING_ARGUMENTS: Final = frozenset({"TrainingArguments", "Seq2SeqTrainingArguments"})


def check(program: ScriptProgram) -> Iterator[ProgramFinding]:
    """Judge every DataLoader and TrainingArguments of a script."""
    for call in program.calls():
        given = program.names.keywords(call)
        if given is None:
            continue
        if is_loader(call):
            yield from _loader(program, call, {**dict(zip(_PARAMETERS, call.args, strict=False)), **given})
        elif names.last(call) in _TRAINING_ARGUMENTS and _is_zero(program, given, "dataloader_num_workers"):
            yield ProgramFinding(
                FindingCode.NO_WORKERS, (call.lineno,), f"{names.last(call)} without dataloader_num_workers"
            )


def _loader(program: ScriptProgram, call: ast.Call, given: Keywords) -> Iterator[ProgramFinding]:
    at = (call.lineno,)
    in_memory = _is_in_memory(program, given.get("dataset"))
    if _is_zero(program, given, "num_workers"):
        if not in_memory:
            yield ProgramFinding(
                FindingCode.NO_WORKERS,
                at,
                "DataLoader with num_workers=0" if "num_workers" in given else "DataLoader without num_workers",
            )
    elif program.names.value(given.get("prefetch_factor")) == 1:
        yield ProgramFinding(FindingCode.NO_PREFETCH, at, "DataLoader with prefetch_factor=1")
    pinned = program.names.value(given["pin_memory"]) if "pin_memory" in given else False
    if pinned is False and program.uses_card and not (in_memory and not any(step_rules.copies(program))):
        yield ProgramFinding(
            FindingCode.NO_PINNED_MEMORY, at, "DataLoader without pin_memory=True, in a program that uses a card"
        )


def _is_zero(program: ScriptProgram, given: Keywords, name: str) -> bool:
    """Whether a number of workers is absent or 0; one that the script does not say is not."""
    if name not in given:
        return True
    value = program.names.value(given[name])
    return value is not UNKNOWN and value in (0, None)


def _is_in_memory(program: ScriptProgram, dataset: ast.expr | None) -> bool:
    if isinstance(dataset, ast.Name):
        return any(
            _is_in_memory(program, value)
            for value in program.names.assigned.get(dataset.id, ())
            if not isinstance(value, ast.Name)
        )
    return isinstance(dataset, ast.Call) and names.last(dataset) == "TensorDataset"
