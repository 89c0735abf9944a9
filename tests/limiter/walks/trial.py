"""Runs a plan's program without the library and with it, and compares what it printed."""

import contextlib
import os
import random
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path

import limiter
from limiter import launch, local_state
from simgpu import build as simgpu_build
from simgpu import state_directory, usage
from tests.limiter.walks.plan import ArbiterFate, Plan
from tests.limiter.walks.programs import Build, compiled

TIMEOUT_S = 100
MIB = 1 << 20
_POOL_STEP_MIB = 32  # a fragmented pool may grow by one step more than was reserved, which is noticed after the call
_SPARE = {"descriptors": 5, "threads": 5}  # of cards and contexts that are used later
_SPARE_MAPPINGS = 30  # the C library's arenas and thread stacks that it keeps
_FIGURE = "figure"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a program left."""

    code: int
    lines: tuple[str, ...]
    figures: tuple[dict[str, int], ...]
    errors: str


def faults_of(plan: Plan, programs: Path) -> tuple[list[str], int]:
    """Run the plan; return one line for each fault, and the number of calls under the library.

    `programs` keeps the compiled programs for the next plan.
    """
    scratch = Path(tempfile.mkdtemp(prefix="walk-", dir=local_state.shared_memory()))
    try:
        return _faults(plan, programs, scratch)
    finally:
        shutil.rmtree(scratch)


def _faults(plan: Plan, programs: Path, scratch: Path) -> tuple[list[str], int]:
    limited = _limited(plan, programs, scratch)
    faults = _faults_of_ends("with the library", limited)
    faults += _faults_of_figures(plan, limited) if limited.figures else ["no figures"]
    return faults + _faults_of_results(plan, programs, scratch, limited), len(limited.lines)


def _faults_of_results(plan: Plan, programs: Path, scratch: Path, limited: Outcome) -> list[str]:
    if plan.is_tight:
        peak = max(usage.peak_bytes_by_card(scratch / "cards").values(), default=0)
        most = _limit_mib(plan) + _POOL_STEP_MIB
        return [f"{peak / MIB:.1f} MiB at once of {plan.memory}"] if peak > most * MIB else []
    native = _native(plan, programs, scratch)
    return _faults_of_ends("without", native) + _differences(native.lines, limited.lines)


def _limit_mib(plan: Plan) -> int:
    return int(plan.memory.removesuffix("MiB"))


def _faults_of_ends(name: str, outcome: Outcome) -> list[str]:
    errors = [line for line in outcome.errors.splitlines() if not line.startswith("vgpu[")]
    return [f"{name}: exit code {outcome.code}", *errors] if outcome.code or errors else []


def _faults_of_figures(plan: Plan, outcome: Outcome) -> list[str]:
    images = _images(outcome.figures)
    faults = [fault for image in images for figures in image[1:] for fault in _growth(plan, image, figures)]
    first, last = images[0][0]["descriptors"], images[-1][0]["descriptors"]
    is_left = last > first + 1  # a connection to the arbiter may exist at once
    return [*faults, f"{last} descriptors after exec, {first} before"] if is_left else faults


def _images(figures: tuple[dict[str, int], ...]) -> list[list[dict[str, int]]]:
    """The figures of each image of the process; an exec makes another image, which counts its rounds from 0."""
    images: list[list[dict[str, int]]] = [[]]
    for after_round in figures:
        if after_round["round"] == 0 and images[-1]:
            images.append([])
        images[-1].append(after_round)
    return images


def _growth(plan: Plan, image: list[dict[str, int]], now: dict[str, int]) -> list[str]:
    """Compare with the charge at first, and otherwise with round 1, because some things are made once."""
    first, second = image[:2]
    is_mapping_flat = plan.build is not Build.PRELOADED or now["mappings"] <= second["mappings"] + _SPARE_MAPPINGS
    charge = [f"{first['charged']} bytes charged at first, then {now['charged']}"]
    mappings = [f"{second['mappings']} mappings, then {now['mappings']}"]
    return [
        *(charge if now["charged"] != first["charged"] else ()),
        *(mappings if not is_mapping_flat else ()),
        *(
            f"{second[name]} {name} after round 1, {now[name]} after {now['round']}"
            for name, spare in _SPARE.items()
            if now[name] > second[name] + spare
        ),
    ]


def _differences(native: tuple[str, ...], limited: tuple[str, ...]) -> list[str]:
    for number, (one, other) in enumerate(zip_longest(native, limited)):
        if one != other:
            return [f"call {number}: {one} without the library, {other} with it"]
    return []


def _environment(cards: Path, **more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("VGPU_")}
    return {**kept, "SIMGPU_STATE": str(cards), "LD_LIBRARY_PATH": str(simgpu_build.OUT), **more}


def _cards(plan: Plan, folder: Path) -> Path:
    cards = (replace(card, context_mib=plan.context_mib) for card in state_directory.make_cards(2))
    state_directory.write_cards(folder, tuple(cards))
    return folder


def _native(plan: Plan, programs: Path, scratch: Path) -> Outcome:
    program = compiled(programs, Build.PRELOADED)
    process = _start([str(program), *plan.arguments], _environment(_cards(plan, scratch / "native")))
    return _end(process)


def _limited(plan: Plan, programs: Path, scratch: Path) -> Outcome:
    cards, containers = _cards(plan, scratch / "cards"), scratch / "containers"
    containers.mkdir()
    env = _environment(cards, **_container(plan, containers / "own"))
    command = [str(compiled(programs, plan.build)), *plan.arguments]
    with _neighbour(plan, programs, cards, containers), _arbiter(plan, containers), contextlib.ExitStack() as stack:
        if plan.has_victim:
            _kill_after(random.Random(plan.seed).uniform(0.02, 0.6), _start(command, env))
        process = _start(command, env)
        if plan.is_paused:
            stack.enter_context(_paused(process))
        return _end(process)


def _container(plan: Plan, folder: Path) -> dict[str, str]:
    folder.mkdir()
    local_state.write_allocation(folder, launch.parse(plan.memory, plan.cores, plan.policy))
    variables = launch.variables(folder, {})
    return {**variables, "LD_PRELOAD": variables["LD_PRELOAD"] if plan.build is Build.PRELOADED else ""}


def _start(command: list[str], env: dict[str, str]) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    return subprocess.Popen(command, env=env, stdout=pipe, stderr=pipe, text=True, start_new_session=True)


def _end(process: subprocess.Popen[str]) -> Outcome:
    try:
        out, errors = process.communicate(timeout=TIMEOUT_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        out, errors = process.communicate()
        errors += f"\nstill running after {TIMEOUT_S} s"
    lines = out.splitlines()
    figures = tuple(_figures(line) for line in lines if line.startswith(_FIGURE))
    return Outcome(process.returncode, tuple(line for line in lines if not line.startswith(_FIGURE)), figures, errors)


def _figures(line: str) -> dict[str, int]:
    words = ("round", *line.split()[1:])
    return {name: int(value) for name, value in zip(words[::2], words[1::2], strict=True)}


def _kill_after(seconds: float, process: subprocess.Popen[str]) -> None:
    time.sleep(seconds)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


@contextlib.contextmanager
def _repeatedly(action: threading.Thread, finished: threading.Event) -> Iterator[None]:
    action.start()
    try:
        yield
    finally:
        finished.set()
        action.join()


@contextlib.contextmanager
def _paused(process: subprocess.Popen[str]) -> Iterator[None]:
    finished = threading.Event()

    def pause() -> None:
        while not finished.wait(0.15):
            for number in (signal.SIGSTOP, signal.SIGCONT):
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, number)
                finished.wait(0.05)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGCONT)

    with _repeatedly(threading.Thread(target=pause), finished):
        yield


@contextlib.contextmanager
def _neighbour(plan: Plan, programs: Path, cards: Path, containers: Path) -> Iterator[None]:
    if not plan.has_neighbour:
        yield
        return
    folder = containers / "other"
    folder.mkdir()
    local_state.write_allocation(folder, launch.parse("2GiB", 40, "burst"))
    command = [str(compiled(programs, Build.PRELOADED)), str(plan.seed + 1), "100000", "1", "40"]
    process = subprocess.Popen(
        command,
        env=_environment(cards, **launch.variables(folder, {})),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _new_arbiter(containers: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen([str(limiter.arbiter_path()), str(containers)], stderr=subprocess.DEVNULL)


@contextlib.contextmanager
def _arbiter(plan: Plan, containers: Path) -> Iterator[None]:
    if plan.arbiter is ArbiterFate.ABSENT:
        yield
        return
    running = [_new_arbiter(containers)]
    finished = threading.Event()

    def disturb() -> None:
        while not finished.wait(0.2):
            if plan.arbiter is ArbiterFate.STOPPED:
                running[-1].send_signal(signal.SIGSTOP)
                finished.wait(0.1)
                running[-1].send_signal(signal.SIGCONT)
            elif plan.arbiter in {ArbiterFate.KILLED, ArbiterFate.RESTARTED}:
                running[-1].kill()
                running[-1].wait()
                if plan.arbiter is ArbiterFate.KILLED:
                    return
                finished.wait(0.1)
                running.append(_new_arbiter(containers))

    try:
        with _repeatedly(threading.Thread(target=disturb), finished):
            yield
    finally:
        running[-1].kill()
        running[-1].wait()
