"""What autotuners choose: in several native runs, because of forms of about the same speed any may win, and in ours."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence

Choices = Mapping[str, str]  # what was chosen, by what it was chosen for


def of_xla(text: str) -> dict[str, str]:
    """Read what XLA wrote for `--xla_gpu_dump_autotune_results_to`: each result without its measured time.

    The text is that of a protobuf, `results { hlo: "..." result { run_time { nanos: 1 } triton { ... } } }`, with a
    field in each line. The key is a hash of the operation.
    """
    found: dict[str, str] = {}
    key = ""
    result: list[str] = []
    for line in _without_times(text.splitlines()):
        if line.startswith("  hlo: "):
            key = hashlib.sha256(line.encode()).hexdigest()[:8]
        elif line == "  result {":
            result = []
        elif line.startswith("    "):
            result.append(line.strip())
        elif line == "  }":
            found[key] = " ".join(result)
    return found


def _without_times(lines: Sequence[str]) -> Iterator[str]:
    is_time = False
    for line in lines:
        is_time = is_time or line == "    run_time {"
        if not is_time:
            yield line
        is_time = is_time and line != "    }"


def alike_percent(runs: Sequence[Choices], others: Sequence[Choices]) -> float:
    """Return how many of the runs' choices one of the others made too, in percent; 100 without any choices."""
    alike = [any(other.get(what) == choice for other in others) for run in runs for what, choice in run.items()]
    return 100 * sum(alike) / len(alike) if alike else 100.0


def alike_among(runs: Sequence[Choices]) -> float:
    """Return how many choices of a run another one of the same runs made too, in percent, on average."""
    each = [alike_percent([run], [*runs[:place], *runs[place + 1 :]]) for place, run in enumerate(runs)]
    return sum(each) / len(each)


def lines(native: Sequence[Choices], ours: Mapping[str, Choices]) -> Iterator[str]:
    """Yield a line for each thing that was chosen: what native runs chose, and which containers chose otherwise."""
    for what in sorted({what for run in [*native, *ours.values()] for what in run}):
        natively = sorted({run[what] for run in native if what in run})
        yield f"  {what}: natively {' or '.join(natively) or 'not chosen'}"
        for name, run in ours.items():
            if run.get(what) not in natively:
                yield f"    {name}: {run.get(what, 'not chosen')}"
