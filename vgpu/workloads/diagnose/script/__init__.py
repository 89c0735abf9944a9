"""Rules about training scripts of PyTorch and TensorFlow: the syntax tree is read, the script never runs.

    parsing      text of at most 4 MiB to a tree, or an error that names the line
    names        what a name, an option or a dictionary of arguments stands for, where the script says so
    step_loops   which statements run for each batch
    *_rules      one module for each part of a program

Where the script does not say a value (an argument from another file) no rule finds anything: a false alarm costs more
trust than a missed defect.
"""

from vgpu.domain.errors import MalformedScript
from vgpu.workloads.diagnose.finding import ProgramFinding, merged
from vgpu.workloads.diagnose.script import (
    dataset_rules,
    loader_rules,
    parallel_rules,
    step_rules,
    tensorflow_rules,
)
from vgpu.workloads.diagnose.script.parsing import parse
from vgpu.workloads.diagnose.script.program import ScriptProgram

_RULES = (loader_rules, tensorflow_rules, dataset_rules, parallel_rules, step_rules)


class NoKnownFramework(MalformedScript):
    """A script that imports no framework that a rule knows."""


def diagnose(text: bytes) -> list[ProgramFinding]:
    """Return what a script's text shows, one finding for each code.

    Raises MalformedScript; NoKnownFramework where no rule has looked.
    """
    program = ScriptProgram.of(parse(text))
    if not program.frameworks:
        raise NoKnownFramework(
            "no import of PyTorch or TensorFlow was seen, so nothing was looked at; the rules know no other framework"
        )
    return merged(finding for rules in _RULES for finding in rules.check(program))
