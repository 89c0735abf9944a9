"""The NVML adapter over the simulated driver, in a process of its own, because a loaded library stays loaded."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from simgpu import build, state_directory
from vgpu.adapters.nvml import cards

MINORS = "[gpu.minor for gpu in nvml.gpus()]"
CARDS = state_directory.make_cards(3, memory_mib=81559, reserved_mib=551)

# Evaluates one expression a line, and prints the code of an NvmlError.
SESSION = """
import json, sys
from dataclasses import asdict
from vgpu.adapters.nvml.session import Nvml
from vgpu.domain.errors import NvmlError
nvml = None
def fault(gpu):
    return nvml.faults([gpu])[gpu]
def subscribe(gpu):
    return gpu in nvml.subscribe([gpu])
for line in sys.stdin:
    try:
        result = eval(line)
    except NvmlError as error:
        result = {"error": error.code}
    print(json.dumps(result), flush=True)
"""


@dataclass
class Session:
    """A process that has NVML open."""

    directory: Path
    process: subprocess.Popen[str]

    def __call__(self, expression: str) -> Any:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{expression}\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def gpus(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self("[asdict(gpu) for gpu in nvml.gpus()]")
        return found

    def change(self, **fields: Any) -> None:
        """Change the second card."""
        state_directory.write_cards(self.directory, [CARDS[0], replace(CARDS[1], **fields), CARDS[2]])


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Session]]:
    driver = build.ensure()
    started: list[subprocess.Popen[str]] = []

    def start() -> Session:
        environment = {**os.environ, "LD_LIBRARY_PATH": str(driver), "SIMGPU_STATE": str(tmp_path)}
        process = subprocess.Popen(
            [sys.executable, "-c", SESSION],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[3],
        )
        started.append(process)
        return Session(tmp_path, process)

    yield start
    for process in started:
        process.kill()
        process.communicate()


@pytest.fixture
def nvml(start: Callable[..., Session], tmp_path: Path) -> Session:
    state_directory.write_cards(tmp_path, CARDS)
    session = start()
    session("globals().update(nvml=Nvml())")
    return session


def test_the_fields_of_a_card(nvml: Session) -> None:
    gpus = nvml.gpus()
    assert [gpu["card"]["uuid"] for gpu in gpus] == [card.uuid for card in CARDS]
    first = gpus[0]
    assert (first["minor"], first["mig_enabled"]) == (0, False)
    assert first["card"] == first["card"] | {
        "index": 0,
        "model": state_directory.MODEL,
        "memory_mib": 81559 - 551,
        "nvlink_peers": [CARDS[1].uuid, CARDS[2].uuid],
        "healthy": True,
    }
    assert nvml("nvml.driver_version()")


def test_mig_mode_is_reported(nvml: Session) -> None:
    nvml.change(mig=True)
    assert [gpu["mig_enabled"] for gpu in nvml.gpus()] == [False, True, False]


def test_a_lost_card_has_a_fault_and_recovers(nvml: Session) -> None:
    ask = f"fault({CARDS[1].uuid!r})"
    assert nvml(ask) == ""
    nvml.change(healthy=False)
    assert nvml(ask) == "GpuIsLost"
    assert CARDS[0].uuid in [gpu["card"]["uuid"] for gpu in nvml.gpus()]
    nvml.change()
    assert nvml(ask) == ""


@pytest.fixture
def holder(nvml: Session) -> Iterator[subprocess.Popen[str]]:
    """A process that holds memory of the first card."""
    driver = build.ensure()
    environment = {**os.environ, "LD_LIBRARY_PATH": str(driver), "SIMGPU_STATE": str(nvml.directory)}
    command = [str(driver / "gpuprobe"), "alloc", "64", "--hold", "0"]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    process.stdout.readline()
    yield process
    process.kill()
    process.communicate()


def processes(nvml: Session) -> dict[str, list[int]]:
    found: dict[str, list[int]] = nvml(f"{{k: [*v] for k, v in nvml.processes({[c.uuid for c in CARDS]!r}).items()}}")
    return found


def test_the_processes_of_each_card(nvml: Session, holder: subprocess.Popen[str]) -> None:
    assert processes(nvml) == {CARDS[0].uuid: [holder.pid], CARDS[1].uuid: [], CARDS[2].uuid: []}
    holder.kill()
    holder.wait()
    assert processes(nvml) == {card.uuid: [] for card in CARDS}


def test_clients_of_mps_are_told_from_other_processes(nvml: Session, holder: subprocess.Popen[str]) -> None:
    """tests/deviceplugin/space/test_road.py has clients."""
    ask = f"{{k: [*v] for k, v in nvml.mps_clients({[c.uuid for c in CARDS]!r}).items()}}"
    assert processes(nvml)[CARDS[0].uuid] == [holder.pid]
    assert nvml(ask) == {card.uuid: [] for card in CARDS}
    call = f"nvmlDeviceGetMPSComputeRunningProcesses_v3@{CARDS[1].uuid}"
    state_directory.inject_faults(nvml.directory, (call, NOT_SUPPORTED))
    assert nvml(ask).keys() == {CARDS[0].uuid, CARDS[2].uuid}


def test_the_memory_of_each_process(nvml: Session, holder: subprocess.Popen[str]) -> None:
    assert nvml(f"nvml.processes([{CARDS[0].uuid!r}])") == {CARDS[0].uuid: {str(holder.pid): 64 << 20}}


def test_what_the_sensors_say(nvml: Session, holder: subprocess.Popen[str]) -> None:  # noqa: ARG001 - holds 64 MiB
    ask = f"{{k: asdict(v) for k, v in nvml.readings({[c.uuid for c in CARDS]!r}).items()}}"
    found = nvml(ask)
    assert found.keys() == {card.uuid for card in CARDS}
    first, second = found[CARDS[0].uuid], found[CARDS[1].uuid]
    assert (first["memory_used_bytes"], second["memory_used_bytes"]) == (64 << 20, 0)
    assert first["memory_free_bytes"] == first["memory_total_bytes"] - (551 + 64 << 20)
    assert (first["power_watts"], first["energy_joules"], first["utilization"]) == (70.0, 0.0, 0.0)
    state_directory.inject_faults(
        nvml.directory,
        ("nvmlDeviceGetPowerUsage", NO_PERMISSION),
        (f"nvmlDeviceGetTemperature@{CARDS[1].uuid}", 15),
    )
    found = nvml(ask)
    assert found.keys() == {CARDS[0].uuid, CARDS[2].uuid}
    assert found[CARDS[0].uuid]["power_watts"] is None


def test_memory_in_use_as_a_driver_tells_it_that_has_the_first_form_only(nvml: Session) -> None:
    state_directory.inject_faults(nvml.directory, ("nvmlDeviceGetMemoryInfo_v2", FUNCTION_NOT_FOUND))
    found = nvml(f"[v.memory_used_bytes for v in nvml.readings({[CARDS[0].uuid]!r}).values()]")
    assert found == [551 << 20]  # what the driver reserves is part of it


def test_the_utilization_of_each_process_is_sampled(nvml: Session) -> None:
    driver = build.ensure()
    environment = {**os.environ, "LD_LIBRARY_PATH": str(driver), "SIMGPU_STATE": str(nvml.directory)}
    ask = f"{{k: asdict(v) for k, v in nvml.busy_samples({{{CARDS[0].uuid!r}: 0}}).items()}}"
    assert nvml(ask) == {CARDS[0].uuid: {"card": [], "processes": [], "active": {}, "names_processes": True}}
    with subprocess.Popen(
        [str(driver / "gpuprobe"), "spin", "1000"], env=environment, stdout=subprocess.PIPE
    ) as spinning:
        end = time.monotonic() + 5
        while not (found := (of_card := nvml(ask)[CARDS[0].uuid])["processes"]) and time.monotonic() < end:
            time.sleep(0.02)
        spinning.kill()
    assert of_card["active"] == {str(spinning.pid): found[-1][1]}
    assert found
    assert all(0 <= share <= 1 and ended > 1e15 for _, ended, share in found)


NOT_SUPPORTED, NO_PERMISSION, FUNCTION_NOT_FOUND = 3, 4, 13


@pytest.mark.parametrize(
    ("function", "code"),
    [
        ("nvmlDeviceGetComputeRunningProcesses_v3", FUNCTION_NOT_FOUND),
        ("nvmlDeviceGetGraphicsRunningProcesses_v3", FUNCTION_NOT_FOUND),
        ("nvmlDeviceGetMPSComputeRunningProcesses_v3", FUNCTION_NOT_FOUND),
    ],
)
def test_an_old_driver_names_processes_too(
    nvml: Session, holder: subprocess.Popen[str], function: str, code: int
) -> None:
    state_directory.inject_faults(nvml.directory, (function, code))
    assert processes(nvml)[CARDS[0].uuid] == [holder.pid]


@pytest.mark.parametrize("code", [999, 15, NO_PERMISSION, state_directory.HANGS])
def test_a_card_that_does_not_name_its_processes_is_left_out(nvml: Session, code: int) -> None:
    nvml("globals().update(nvml=Nvml(timeout_s=0.2))")
    state_directory.inject_faults(nvml.directory, (f"nvmlDeviceGetComputeRunningProcesses_v3@{CARDS[1].uuid}", code))
    assert processes(nvml).keys() == {CARDS[0].uuid, CARDS[2].uuid}
    state_directory.inject_faults(nvml.directory)


def test_an_unknown_uuid_is_not_found(nvml: Session) -> None:
    assert nvml("fault('GPU-00000000-0000-0000-0000-000000000000')") == "NotFound"
    assert nvml("subscribe('GPU-00000000-0000-0000-0000-000000000000')") is False


def test_xids_arrive(nvml: Session) -> None:
    assert nvml(f"subscribe({CARDS[2].uuid!r})") is True
    assert nvml("nvml.wait_for_xid(20)") is None
    state_directory.inject_xid(nvml.directory, CARDS[2].uuid, 79)
    assert nvml("asdict(nvml.wait_for_xid(2000))") == {"gpu": CARDS[2].uuid, "code": 79}
    assert nvml("nvml.wait_for_xid(20)") is None


def test_without_reserved_memory_in_the_driver_memory_is_the_total(nvml: Session) -> None:
    state_directory.inject_faults(nvml.directory, ("nvmlDeviceGetMemoryInfo_v2", 13))
    assert nvml.gpus()[0]["card"]["memory_mib"] == 81559


def test_a_failing_driver_is_an_nvml_error(nvml: Session) -> None:
    state_directory.inject_faults(nvml.directory, ("nvmlDeviceGetCount_v2", 999))
    assert nvml(MINORS) == {"error": 999}


UNKNOWN, GPU_IS_LOST, RESET_REQUIRED, TIMEOUT = 999, 15, 16, 10
OF_ONE_CARD = [
    "nvmlDeviceGetHandleByIndex_v2",
    "nvmlDeviceGetUUID",
    "nvmlDeviceGetName",
    "nvmlDeviceGetMemoryInfo_v2",
    "nvmlDeviceGetP2PStatus",
    "*",
]


@pytest.mark.heavy
@pytest.mark.parametrize("function", OF_ONE_CARD)
@pytest.mark.parametrize("code", [UNKNOWN, GPU_IS_LOST, RESET_REQUIRED, TIMEOUT, state_directory.HANGS])
def test_a_card_that_fails_or_hangs_affects_no_other(nvml: Session, function: str, code: int) -> None:
    nvml("globals().update(nvml=Nvml(timeout_s=0.2))")
    state_directory.inject_faults(nvml.directory, (f"{function}@{CARDS[1].uuid}", code))
    assert set(nvml(MINORS)) >= {0, 2}
    assert [nvml(f"fault({card.uuid!r})") for card in (CARDS[0], CARDS[2])] == ["", ""]
    assert nvml(f"subscribe({CARDS[0].uuid!r})") is True
    state_directory.inject_faults(nvml.directory)
    time.sleep(0.1)  # a call that hung returns
    assert nvml(MINORS) == [0, 1, 2]
    assert nvml(f"fault({CARDS[1].uuid!r})") == ""


@pytest.mark.parametrize(
    ("code", "word"), [(UNKNOWN, "Unknown"), (GPU_IS_LOST, "GpuIsLost"), (state_directory.HANGS, "NotAnswering")]
)
def test_the_fault_of_a_card_that_fails_or_hangs(nvml: Session, code: int, word: str) -> None:
    nvml("globals().update(nvml=Nvml(timeout_s=0.2))")
    state_directory.inject_faults(nvml.directory, (f"*@{CARDS[1].uuid}", code))
    assert nvml(f"fault({CARDS[1].uuid!r})") == word


def test_a_lost_card_does_not_end_the_xids_of_the_others(nvml: Session) -> None:
    """NVML's wait for a set of events fails while a card of the set is lost."""
    for card in CARDS:
        assert nvml(f"subscribe({card.uuid!r})") is True
    nvml.change(healthy=False)
    assert nvml("nvml.wait_for_xid(20)") == {"error": GPU_IS_LOST}
    state_directory.inject_xid(nvml.directory, CARDS[2].uuid, 79)
    assert nvml("asdict(nvml.wait_for_xid(2000))") == {"gpu": CARDS[2].uuid, "code": 79}
    nvml.change()
    assert nvml(f"subscribe({CARDS[1].uuid!r})") is True
    state_directory.inject_xid(nvml.directory, CARDS[1].uuid, 48)
    assert nvml("asdict(nvml.wait_for_xid(2000))") == {"gpu": CARDS[1].uuid, "code": 48}


def test_the_event_of_a_lost_card_names_the_card(nvml: Session) -> None:
    """NVML does not tell the UUID of a card that has fallen off the bus."""
    assert nvml(f"subscribe({CARDS[1].uuid!r})") is True
    state_directory.inject_xid(nvml.directory, CARDS[1].uuid, 79)
    state_directory.inject_faults(nvml.directory, (f"nvmlDeviceGetUUID@{CARDS[1].uuid}", GPU_IS_LOST))
    assert nvml("asdict(nvml.wait_for_xid(2000))") == {"gpu": CARDS[1].uuid, "code": 79}


@pytest.mark.parametrize(
    ("function", "answer", "word"),
    [
        ("nvmlDeviceGetRemappedRows", "(0, 0, 0, 0)", ""),
        ("nvmlDeviceGetRemappedRows", "(0, 1, 1, 0)", "RowRemapPending"),
        ("nvmlDeviceGetRemappedRows", "(0, 1, 1, 1)", "RowRemapFailed"),
        ("nvmlDeviceGetTotalEccErrors", "0", ""),
        ("nvmlDeviceGetTotalEccErrors", "2", "UncorrectableEcc2"),
    ],
)
def test_what_the_memory_of_a_card_has_lost_is_a_fault(nvml: Session, function: str, answer: str, word: str) -> None:
    """The simulated NVML has neither function: then there is no fault."""
    assert nvml(f"fault({CARDS[0].uuid!r})") == ""
    nvml(f"setattr(__import__('pynvml'), {function!r}, lambda *_: {answer})")
    assert nvml(f"fault({CARDS[0].uuid!r})") == word


def test_nvml_is_initialised_again_after_a_reload_of_the_driver(nvml: Session) -> None:
    assert nvml(f"subscribe({CARDS[0].uuid!r})") is True
    for _ in range(3):
        state_directory.reload_driver(nvml.directory)
        assert nvml(f"fault({CARDS[0].uuid!r})") == "Uninitialized"
        assert nvml(MINORS) == [0, 1, 2]
        assert nvml(f"fault({CARDS[0].uuid!r})") == ""
        assert nvml(f"subscribe({CARDS[0].uuid!r})") is True
        state_directory.inject_xid(nvml.directory, CARDS[0].uuid, 79)
        assert nvml("asdict(nvml.wait_for_xid(2000))") == {"gpu": CARDS[0].uuid, "code": 79}


def test_a_driver_that_is_away_for_a_while_is_used_again(nvml: Session) -> None:
    state_directory.reload_driver(nvml.directory)
    state_directory.inject_faults(nvml.directory, ("nvmlInit_v2", 9))
    assert [nvml(MINORS) for _ in range(3)] == [{"error": 9}] * 3
    state_directory.inject_faults(nvml.directory)
    assert nvml(MINORS) == [0, 1, 2]


def test_the_library_of_a_replaced_driver_needs_a_restart(nvml: Session) -> None:
    state_directory.reload_driver(nvml.directory)
    state_directory.inject_faults(nvml.directory, ("nvmlInit_v2", 18))
    assert nvml(MINORS) == {"error": 18}


def test_without_a_driver_there_is_an_error(start: Callable[..., Session]) -> None:
    assert start()("Nvml()") == {"error": 9}


def test_after_closing_every_call_fails(nvml: Session) -> None:
    assert nvml("nvml.__exit__(None, None, None)") is None
    assert nvml(MINORS) == {"error": 1}


def test_closing_waits_for_the_event_wait_of_another_thread(nvml: Session) -> None:
    nvml("globals().update(thread=__import__('threading').Thread(target=nvml.wait_for_xid, args=(300,)))")
    nvml("thread.start()")
    nvml("__import__('time').sleep(0.05)")
    assert nvml("nvml.__exit__(None, None, None)") is None
    assert nvml("thread.is_alive()") is False
    assert nvml("nvml.wait_for_xid(10)") == {"error": 1}
    assert nvml(f"subscribe({CARDS[0].uuid!r})") is False


def test_a_text_that_is_not_utf_8_is_shown_with_replacement_characters(nvml: Session) -> None:
    """A single byte of one card's name once ended the plugin of the whole node."""
    cards = nvml.directory / "cards"
    cards.write_bytes(cards.read_bytes().replace(b'"NVIDIA H100', b'"NVIDIA \xff\x1bH100', 1))
    assert [gpu["card"]["model"] for gpu in nvml.gpus()] == [
        "NVIDIA \ufffd?H100 80GB HBM3",
        state_directory.MODEL,
        state_directory.MODEL,
    ]
    assert [nvml(f"fault({card.uuid!r})") for card in CARDS] == ["", "", ""]


@pytest.mark.parametrize("code", [NOT_SUPPORTED, NO_PERMISSION])
def test_a_card_that_does_not_tell_its_name_is_offered(nvml: Session, code: int) -> None:
    state_directory.inject_faults(nvml.directory, (f"nvmlDeviceGetName@{CARDS[1].uuid}", code))
    assert [gpu["card"]["model"] for gpu in nvml.gpus()][1] == "NVIDIA GPU"
    assert nvml(f"fault({CARDS[1].uuid!r})") == ""


@pytest.mark.parametrize("uuid", [b"GPU-\xff", "GPU-\u00e9".encode(), b"GPU-1"])
def test_a_card_whose_uuid_cannot_be_read_is_left_out(nvml: Session, uuid: bytes) -> None:
    nvml(
        "setattr(__import__('pynvml'), 'nvmlDeviceGetUUID', lambda handle, _f=__import__('pynvml').nvmlDeviceGetUUID: "
        f"{uuid!r}.decode() if _f(handle) == {CARDS[1].uuid!r} else _f(handle))"
    )
    assert nvml(MINORS) == [0, 2]


def test_the_texts_of_driver_and_errors_need_not_be_utf_8(nvml: Session) -> None:
    nvml("setattr(__import__('pynvml').nvmlSystemGetDriverVersion, '__wrapped__', lambda: b'580.' + b'\\xff' * 1000)")
    assert nvml("nvml.driver_version()") == "580." + "\ufffd" * 92
    nvml("setattr(__import__('pynvml'), 'nvmlErrorString', lambda code: b'\\xff'.decode())")
    state_directory.inject_faults(nvml.directory, (f"nvmlDeviceGetMemoryInfo_v2@{CARDS[1].uuid}", 777))
    assert nvml(MINORS) == [0, 2]


ASKED_OF_A_CARD = [
    ("gpus", "[gpu.card.index for gpu in nvml.gpus()]", [0, 2]),
    ("faults", f"sorted(nvml.faults({[card.uuid for card in CARDS]!r}).values())", ["", ""]),
    ("subscribe", f"len(nvml.subscribe({[card.uuid for card in CARDS]!r}))", 2),
    ("readings", f"len(nvml.readings({[card.uuid for card in CARDS]!r}))", 2),
    ("processes", f"len(nvml.processes({[card.uuid for card in CARDS]!r}))", 2),
    ("samples", f"len(nvml.busy_samples({dict.fromkeys((card.uuid for card in CARDS), 0)!r}))", 2),
]


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("expression", "answer"), [row[1:] for row in ASKED_OF_A_CARD], ids=[row[0] for row in ASKED_OF_A_CARD]
)
def test_a_card_that_hangs_delays_the_others_by_little(nvml: Session, expression: str, answer: object) -> None:
    state_directory.inject_faults(nvml.directory, (f"*@{CARDS[1].uuid}", state_directory.HANGS))
    begun = time.monotonic()
    assert nvml(expression) == answer
    assert time.monotonic() - begun < 5  # each call has ten seconds
    begun = time.monotonic()
    assert nvml(expression) == answer
    assert time.monotonic() - begun < 0.5


@pytest.mark.heavy
def test_a_card_that_answers_late_is_not_faulty_meanwhile(nvml: Session) -> None:
    state_directory.inject_faults(nvml.directory, (f"*@{CARDS[1].uuid}", state_directory.HANGS))
    ask = f"nvml.faults({[card.uuid for card in CARDS]!r})"
    assert nvml(ask) == {CARDS[0].uuid: "", CARDS[2].uuid: ""}
    state_directory.inject_faults(nvml.directory)
    time.sleep(0.1)
    assert nvml(ask) == {card.uuid: "" for card in CARDS}


def test_a_card_without_memory_of_its_own_has_the_machine_s_less_a_reserve(nvml: Session) -> None:
    state_directory.inject_faults(
        nvml.directory,
        *(
            (f"{function}@{CARDS[0].uuid}", NOT_SUPPORTED)
            for function in ("nvmlDeviceGetMemoryInfo", "nvmlDeviceGetMemoryInfo_v2")
        ),
    )
    usable = cards.unified_bytes(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")) >> 20
    first, second, _ = nvml.gpus()
    assert (first["card"]["unified"], first["card"]["memory_mib"]) == (True, usable)
    assert (second["card"]["unified"], second["card"]["memory_mib"]) == (False, 81559 - 551)
    assert nvml(f"fault({CARDS[0].uuid!r})") == ""
    state_directory.inject_faults(
        nvml.directory, ("nvmlDeviceGetMemoryInfo", NOT_SUPPORTED), ("nvmlDeviceGetMemoryInfo_v2", FUNCTION_NOT_FOUND)
    )
    assert {gpu["card"]["memory_mib"] for gpu in nvml.gpus()} == {usable // 3}


@pytest.mark.parametrize(("machine_gib", "usable_gib"), [(128, 112), (16, 12), (6, 3), (1024, 896)])
def test_the_reserve_of_a_machine_whose_memory_the_card_uses(machine_gib: int, usable_gib: int) -> None:
    assert cards.unified_bytes(machine_gib << 30) == usable_gib << 30


@pytest.mark.parametrize(("capability", "serves"), [(61, False), (70, True), (75, True), (103, True), (120, True)])
def test_groups_in_space_are_served_from_volta_on(nvml: Session, capability: int, serves: bool) -> None:
    nvml.change(capability=capability)
    assert [gpu["card"]["serves_space"] for gpu in nvml.gpus()] == [True, serves, True]
    state_directory.inject_faults(nvml.directory, ("nvmlDeviceGetCudaComputeCapability", NOT_SUPPORTED))
    assert not any(gpu["card"]["serves_space"] for gpu in nvml.gpus())


@pytest.mark.parametrize(
    ("mode", "is_for_one_process", "fault"),
    [(0, False, ""), (1, True, ""), (2, False, "ComputeModeProhibited"), (3, True, "")],
)
def test_the_compute_mode_of_a_card(nvml: Session, mode: int, is_for_one_process: bool, fault: str) -> None:
    nvml.change(compute_mode=mode)
    assert [gpu["card"]["exclusive_process"] for gpu in nvml.gpus()] == [False, is_for_one_process, False]
    assert nvml(f"fault({CARDS[1].uuid!r})") == fault
    state_directory.inject_faults(nvml.directory, (f"nvmlDeviceGetComputeMode@{CARDS[1].uuid}", NO_PERMISSION))
    assert nvml(f"fault({CARDS[1].uuid!r})") == ""
