"""`vgpu hold`: holds cards at a utilization, and gets out of the way of others."""

import asyncio
import contextlib
import json
import logging
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from functools import partial
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Final

from limiter import launch
from limiter.host import Host
from vgpu.adapters.cuda import LoopKernel
from vgpu.adapters.nvml.session import Nvml
from vgpu.cli.failure import NOT_FOUND, WRONG_USAGE, CommandFailed
from vgpu.cli.local import allocations
from vgpu.cli.local.hold_jobs import LinkedCardReader
from vgpu.cli.local.top import Output
from vgpu.domain.errors import NvmlError
from vgpu.domain.formats import container_paths
from vgpu.domain.identifiers import CardUuid
from vgpu.workloads.hold.control import HoldSettings, Mode
from vgpu.workloads.hold.generator import Generator
from vgpu.workloads.hold.session import SAMPLE_S, HoldReport, HoldSession

LOG_BYTES: Final = 3_000_000
LOG_FILES: Final = 3
STOP_S: Final = 1.5
_NS: Final = 1e9
_LABELS: Final = ("gpu_uuid", "synthetic")


class NvmlSensors:
    """What NVML says of a card and the other cards of its job, and what the container's own region says of turns."""

    def __init__(self, nvml: Nvml, gpu: CardUuid, pid: int, region: Path, jobs: LinkedCardReader) -> None:
        """`pid`: of this process, as NVML knows it. `region`: the folder of the limiter's files, if there is one."""
        self._nvml = nvml
        self._gpu = gpu
        self._pid = pid
        self._region = region
        self._jobs = jobs
        self._seen_us: dict[CardUuid, int] = {}
        self._turns = 0
        self.others()

    def utilization(self) -> float | None:
        """Return the card's utilization in percent."""
        return self._nvml.utilization(self._gpu)

    def others(self) -> bool:
        """Whether another process has used the card since the last call: by its samples, or by the own turns."""
        found = self._is_used(self._gpu)
        turns, self._turns = self._turns, self._turns_of_others()
        return found or self._turns > turns

    def job_cards(self) -> frozenset[CardUuid]:
        """Return the other cards of the job that has this card."""
        return self._jobs.of(self._gpu)

    def used_elsewhere(self) -> CardUuid | None:
        """Return one of `job_cards` that another process has used since the last call, by its samples."""
        return next((gpu for gpu in sorted(self.job_cards()) if self._is_used(gpu)), None)

    def _is_used(self, gpu: CardUuid) -> bool:
        seen_us = self._seen_us.get(gpu, 0)
        samples = self._nvml.busy_samples({gpu: seen_us}).get(gpu)
        ends = samples.active if samples else {}
        self._seen_us[gpu] = max(ends.values(), default=seen_us)
        return any(pid != self._pid and end > seen_us for pid, end in ends.items())

    def _turns_of_others(self) -> int:
        cards = allocations.read_cards(self._region)
        return sum(card.activity.handovers + card.activity.turn.count for card in cards if card.gpu == self._gpu)


def chosen(nvml: Nvml, asked: Sequence[str]) -> list[CardUuid]:
    """Return the UUIDs of the cards that are asked for by index or UUID; all cards without. Raises CommandFailed."""
    gpus = nvml.gpus()
    names: dict[str, CardUuid] = {str(gpu.card.index): gpu.card.uuid for gpu in gpus} | {
        gpu.card.uuid: gpu.card.uuid for gpu in gpus
    }
    unknown = [name for name in asked if name not in names]
    if unknown or not gpus:
        raise CommandFailed(f"--gpu: no card {', '.join(unknown) or 'at all'}; see nvidia-smi -L", NOT_FOUND)
    return list(dict.fromkeys(names[name] for name in asked)) or [gpu.card.uuid for gpu in gpus]


def _nvml() -> Nvml:
    try:
        return Nvml()
    except NvmlError as error:
        hint = "NVML comes with NVIDIA's driver: install it, or in a pod ask for a GPU"
        raise CommandFailed(f"no GPU can be used on this machine: {error}; {hint}", NOT_FOUND) from error


def run(
    asked: Sequence[str],
    settings: HoldSettings,
    environment: Mapping[str, str],
    host: Host,
    now: Callable[[], datetime],
    *,
    log_file: Path | None,
    output: Output,
    metrics_listen: str | None,
    duration_s: float | None,
) -> None:
    """Hold cards until SIGTERM, SIGINT or the end of the duration. Raises CommandFailed, CudaError and NvmlError."""
    report = _reporter(_logger(log_file), output, now)
    listening = _listening(metrics_listen) if metrics_listen else None
    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())
    with _nvml() as nvml, _loads(chosen(nvml, asked), host) as loads:
        folder = _limiter_folder(environment)
        jobs = LinkedCardReader(allocations.state_directories(environment, None), host.monotonic_ns)
        sessions = [
            HoldSession(gpu, settings, _sensors(nvml, gpu, folder, jobs), load, report, host.monotonic_ns())
            for gpu, load in loads.items()
        ]
        if listening:
            _serve_metrics(listening, sessions, host)
        _hold(sessions, list(loads.values()), host, stopping, duration_s)


@contextlib.contextmanager
def _loads(gpus: Sequence[CardUuid], host: Host) -> Iterator[Mapping[CardUuid, Generator]]:
    """Start a load on each card; at the end stop them all, within `STOP_S`. Raises CudaError."""
    started: dict[CardUuid, Generator] = {}
    try:
        for gpu in gpus:
            load = Generator(partial(LoopKernel, gpu), lambda: host.monotonic_ns() / _NS)
            load.start()
            started[gpu] = load
        yield started
    finally:
        for load in started.values():
            load.stop(0)  # each takes as long as a kernel and the release of its card
        end_s = host.monotonic_ns() / _NS + STOP_S
        for load in started.values():
            load.stop(max(0.0, end_s - host.monotonic_ns() / _NS))


def _hold(
    sessions: Sequence[HoldSession],
    loads: Sequence[Generator],
    host: Host,
    stopping: threading.Event,
    duration_s: float | None,
) -> None:
    begun_ns = host.monotonic_ns()
    while not stopping.wait(SAMPLE_S):
        now_ns = host.monotonic_ns()
        for session in sessions:
            session.sample(now_ns)
        for load in loads:
            load.check()
        if duration_s is not None and now_ns - begun_ns >= duration_s * _NS:
            return


def _sensors(nvml: Nvml, gpu: CardUuid, folder: Path, jobs: LinkedCardReader) -> NvmlSensors:
    pid = os.getpid()
    known = nvml.processes([gpu]).get(gpu, {})
    if pid not in known:
        raise CommandFailed(
            f"{gpu}: NVML does not list this process as {pid}, so its load cannot be told from others' work; "
            "run it in the host's pid namespace (hostPID: true), or in a container with a share",
            WRONG_USAGE,
        )
    return NvmlSensors(nvml, gpu, pid, folder, jobs)


def _limiter_folder(environment: Mapping[str, str]) -> Path:
    file = environment.get(launch.LIMITS_ENV)
    return Path(file).parent if file else Path(container_paths.FILES)


def _logger(file: Path | None) -> logging.Logger:
    logger = logging.getLogger("vgpu.hold")
    logger.setLevel(logging.INFO)
    logger.propagate = False
    handler = _log_file(file) if file else logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(message)s"))
    logger.handlers = [handler]
    return logger


def _log_file(file: Path) -> logging.Handler:
    try:
        return RotatingFileHandler(file, maxBytes=LOG_BYTES, backupCount=LOG_FILES - 1)
    except OSError as error:
        raise CommandFailed(f"--log: {file}: {error.strerror}", WRONG_USAGE) from error


def _reporter(logger: logging.Logger, output: Output, now: Callable[[], datetime]) -> Callable[[HoldReport], None]:
    def report(made: HoldReport) -> None:
        at = now()
        if output is Output.JSON:
            time = at.isoformat(timespec="milliseconds")
            logger.info(json.dumps({"time": time, **asdict(made), "synthetic": True}))
        else:
            logger.info("%s %s %s", at.isoformat(timespec="seconds"), made.gpu, made.message)

    return report


def _listening(address: str) -> socket.socket:
    from vgpu.adapters import metrics_server  # noqa: PLC0415 - needs the packages of a service

    try:
        return metrics_server.bound(address)
    except ValueError as error:
        raise CommandFailed(f"--metrics-listen: {address[:80]!r} is not IP:PORT", WRONG_USAGE) from error
    except OSError as error:
        raise CommandFailed(f"--metrics-listen: {address}: {os.strerror(error.errno or 0)}", WRONG_USAGE) from error


def _serve_metrics(listening: socket.socket, sessions: Sequence[HoldSession], host: Host) -> None:
    """Serve the metrics in a thread that ends with the process."""
    from vgpu.adapters import metrics_server  # noqa: PLC0415 - needs the packages of a service
    from vgpu.adapters.metrics import Metric, MetricFamily, MetricKind, Registry  # noqa: PLC0415

    target = Metric("vgpu_hold_target_percent", MetricKind.GAUGE, "Utilization to hold", _LABELS)
    load = Metric("vgpu_hold_load_percent", MetricKind.GAUGE, "Utilization of the card, by NVML", _LABELS)
    multiplier = Metric("vgpu_hold_multiplier", MetricKind.GAUGE, "Loop iterations every 10 ms", _LABELS)
    running = Metric(
        "vgpu_hold_running", MetricKind.GAUGE, "1 while load is made, 0 while others use the card", _LABELS
    )

    def families() -> list[MetricFamily]:
        now_ns = host.monotonic_ns()
        known = [((session.gpu, "true"), session) for session in sessions]
        return [
            MetricFamily(target, [(labels, session.target(now_ns)) for labels, session in known]),
            MetricFamily(
                load, [(labels, session.load_percent) for labels, session in known if session.load_percent is not None]
            ),
            MetricFamily(multiplier, [(labels, session.state.multiplier) for labels, session in known]),
            MetricFamily(running, [(labels, session.state.mode is Mode.RUN) for labels, session in known]),
        ]

    registry = Registry()
    registry.add(families)
    serve = metrics_server.serve_on(listening, registry, lambda: host.monotonic_ns() / _NS)
    threading.Thread(target=lambda: asyncio.run(serve), name="metrics", daemon=True).start()
