"""Whether a documented command can be run: its program, its options, the files and objects that it names."""

import re
import subprocess
from functools import cache
from itertools import pairwise
from pathlib import Path

from tests.contract.documents import python_modules, typer_commands
from tests.contract.documents.shell import Command
from tests.contract.repository import ROOT
from tests.manifests.objects import names_of_objects

# Programs that are not ours, and commands of the shell: only their names are known.
OTHERS = {
    *(
        "cd",
        "ctr",
        "curl",
        "done",
        "echo",
        "export",
        "grep",
        "head",
        "helm",
        "k3s",
        "kubeadm",
        "nice",
        "nsenter",
        "oc",
        "pip",
    ),
    *(
        "restorecon",
        "sed",
        "semanage",
        "skopeo",
        "sleep",
        "source",
        "test",
    ),
}
KUBECTL = {
    *("annotate", "apply", "create", "delete", "describe", "drain", "edit", "exec", "explain"),
    *("get", "krew", "label", "logs", "patch", "rollout", "scale", "uncordon", "wait"),
}
PLACEHOLDER = re.compile(r"^[A-Z][A-Z0-9/_-]*$|\.\.\.|/[A-Z]+$")

_OURS = re.compile(r"(?<![\w.-])(vgpu-[a-z][a-z-]*)")


def problem(command: Command) -> str | None:
    """What is wrong with a command; None: nothing that can be seen without running it."""
    program, *words = command.words or ("",)
    given = tuple(words)
    if program == "vgpu" or (program == "kubectl" and given[:1] == ("vgpu",)):
        return typer_commands.problem(given[program == "kubectl" :], whole=True)
    if program == "kubectl":
        return _problem_of_kubectl(given)
    if program == "make":
        return _problem_of_make(given)
    if Path(program).name in ("python", "python3"):
        return _problem_of_python(given)
    return _problem_of_another(program)


def problem_of_mention(text: str) -> str | None:
    """What is wrong with a command of `vgpu` in a line of text, which need not be complete."""
    words = tuple(text.removeprefix("kubectl ").split())
    return typer_commands.problem(words[1:], whole=False) if words[:1] == ("vgpu",) and len(words) > 1 else None


def _problem_of_another(program: str) -> str | None:
    is_known = program in OTHERS or program.startswith(("WORK/", "$")) or program == "build/simgpu/gpuprobe"
    return None if is_known else f"the program {program} is not known"


def _problem_of_python(words: tuple[str, ...]) -> str | None:
    if words[:1] == ("-m",):
        return python_modules.problem(words[1], words[2:])
    return None if words in (("-",), ()) else f"`python {words[0]}` is not known"


def _problem_of_make(words: tuple[str, ...]) -> str | None:
    makefile = (ROOT / "Makefile").read_text()
    for variable in (word.partition("=")[0] for word in words if "=" in word):
        if f"$({variable})" not in makefile:
            return f"the Makefile uses no variable {variable}"
    return next(filter(None, (_problem_of_target(word) for word in words if "=" not in word)), None)


@cache
def _problem_of_target(target: str) -> str | None:
    done = subprocess.run(["make", "--dry-run", target], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stderr.strip() if done.returncode else None


def _problem_of_kubectl(words: tuple[str, ...]) -> str | None:
    verb = next((word for word in words if word in KUBECTL), None)
    if verb is None:
        return f"`kubectl {' '.join(words)}` has no verb of {sorted(KUBECTL)}"
    return _missing_file(words) or _missing_object(words)


def _missing_file(words: tuple[str, ...]) -> str | None:
    for option, value in pairwise(words):
        is_ours = option in ("-f", "-k") and value.startswith(("manifests/", "docs/"))
        if is_ours and not PLACEHOLDER.search(value) and not (ROOT / value).exists():
            return f"there is no {value}"
    return None


def _missing_object(words: tuple[str, ...]) -> str | None:
    """Names that begin with `vgpu-` are those of objects in manifests/, unless the command creates them."""
    if "create" in words:
        words = tuple(word for word in words if word.startswith("--"))
    named = {name for word in words for name in _OURS.findall(word)}
    unknown = sorted(named - names_of_objects())
    return f"manifests/ has no object {unknown[0]}" if unknown else None
