"""The rule about torch.nn.DataParallel."""

from collections.abc import Iterator

from vgpu.workloads.diagnose.catalogue import Code
from vgpu.workloads.diagnose.finding import Finding
from vgpu.workloads.diagnose.script.program import Program


def check(program: Program) -> Iterator[Finding]:
    """Find DataParallel, and its form as a function."""
    for call in program.calls():
        name = program.full_name(call.func)
        if name.startswith("torch.") and name.rpartition(".")[2] in ("DataParallel", "data_parallel"):
            yield Finding(Code.DATA_PARALLEL, (call.lineno,), f"{name}: one process drives all cards")
