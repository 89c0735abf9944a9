"""The rule about torch.nn.DataParallel."""

from collections.abc import Iterator

from vgpu.workloads.diagnose.catalogue import FindingCode
from vgpu.workloads.diagnose.finding import ProgramFinding
from vgpu.workloads.diagnose.script.program import ScriptProgram


def check(program: ScriptProgram) -> Iterator[ProgramFinding]:
    """Find DataParallel, and its form as a function."""
    for call in program.calls():
        name = program.full_name(call.func)
        if name.startswith("torch.") and name.rpartition(".")[2] in ("DataParallel", "data_parallel"):
            yield ProgramFinding(FindingCode.DATA_PARALLEL, (call.lineno,), f"{name}: one process drives all cards")
