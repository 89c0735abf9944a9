"""A cluster on which everything can be broken: two replicas, a history in PostgreSQL, and clocks that jump."""

import subprocess
from pathlib import Path
from typing import Final, NamedTuple

import httpx
import yaml

from cluster import admin_service, api, parts
from cluster.additions import postgres
from cluster.additions.kueue_manager import Kueue
from cluster.additions.postgres import Postgres
from tests.e2e.chaos.chaos_cluster import EXTENDER, ChaosCluster
from tests.manifests import examples

ADDRESSES: Final = ("127.0.0.1", "127.0.3.2")  # of the extenders; the first one is asked by the monitor too
FAILURES: Final = (api.RequestRefused, httpx.HTTPError, OSError)  # of a request while something is broken
URLS: Final = tuple(f"http://{address}:9870" for address in ADDRESSES)
_PORTS: Final = (parts.SCHEDULER_PORT, 10272)
_SOURCE: Final = Path(__file__).with_name("clock.c")


class SetMemory(NamedTuple):
    """What a container was given of each card, and what `vgpu set` made of it."""

    given_mib: int
    now_mib: int


class WalkCluster(ChaosCluster):
    """Two nodes of four cards, and two replicas of extender and scheduler; the first one serves the admin REST.

    The history is in PostgreSQL where it is installed, in a file otherwise.
    """

    extenders: list[parts.ClusterPart]
    schedulers: list[parts.ClusterPart]
    database: Postgres | None = None
    history_url: str = ""
    kueue: Kueue | None = None
    set_memory: dict[tuple[str, str], SetMemory]  # by pod (NAMESPACE/NAME) and container

    def given_mib(self, pod: str, container: str, mib: int) -> int:
        """Return what a container was given whose limit is `mib` now, which `vgpu set` may have changed."""
        known = self.set_memory.get((pod, container))
        return known.given_mib if known and known.now_mib == mib else mib

    def _make(self) -> None:
        self.set_memory = {}
        self._start_database()
        super()._make()
        plain = dict(self.maker.environment)
        made = []
        for index, address in enumerate(ADDRESSES):
            self.maker.environment = plain | self._clock(index)
            made.append(self.maker.replica(f"walk-{'ab'[index]}", address, _PORTS[index], self._flags(index)))
        self.maker.environment = plain
        self._redirect(EXTENDER, self.routes[EXTENDER])  # making a replica writes its kubeconfig anew
        self.extenders, self.schedulers = [extender for extender, _ in made], [scheduler for _, scheduler in made]
        self.extender, self.scheduler = made[0]

    def start_kueue(self) -> None:
        """Install Kueue with the example's configuration, and return when its webhooks answer."""
        self.kueue = Kueue(self, yaml.safe_load((examples.FOLDER / "kueue" / "configuration.yaml").read_text()))
        self.kueue.start()

    def start_ended(self) -> None:
        """Start each part that has ended, and Kueue's manager."""
        super().start_ended()
        if self.kueue and self.kueue.process and self.kueue.process.has_ended():
            self.kueue.process.start()

    def _start_database(self) -> None:
        if postgres.missing():
            return
        self.work.chmod(0o755)
        self.database = Postgres(self.work / "postgres")
        self.database.start()
        self.history_url = self.database.create("history")

    def _flags(self, index: int) -> list[str]:
        history = [f"--history-url={self.history_url}"] if self.history_url else []
        if index:  # the first one asks it about a history in a file, while it leads
            return [f"--admin-listen={ADDRESSES[index]}:{admin_service.PORT}", "--admin-auth=kubernetes", *history]
        metrics = f"--metrics-listen=127.0.0.1:{parts.EXTENDER_METRICS_PORT}"
        return [f"--admin-listen={parts.ADMIN}", "--admin-auth=kubernetes", metrics, *history]

    def _clock(self, index: int) -> dict[str, str]:
        library = self.work / "clock.so"
        if not library.exists():
            subprocess.run(["gcc", "-shared", "-fPIC", "-O2", "-o", library, _SOURCE], check=True)
        self.set_clock(index, 0)
        return {"LD_PRELOAD": str(library), "VGPU_WALK_CLOCK": str(self._clock_file(index))}

    def _clock_file(self, index: int) -> Path:
        return self.work / f"clock-{index}"

    def set_clock(self, index: int, seconds: int) -> None:
        """Set the clock of one replica's extender `seconds` ahead of the machine's clock."""
        fresh = self._clock_file(index).with_suffix(".new")
        fresh.write_text(str(seconds))
        fresh.rename(self._clock_file(index))

    @property
    def parts(self) -> list[parts.ClusterPart]:
        """All parts, with both replicas."""
        return [*self.extenders, self.webhook, *self.plugins, *self.schedulers]

    def close(self) -> None:
        """End every process, PostgreSQL and Kueue's manager too."""
        if self.kueue and self.kueue.process:
            self.kueue.process.kill()
        if self.database is not None:
            self.database.stop()
        super().close()
