"""A cluster whose parts each reach the API server on a way of their own, and whose plugins have a small disk."""

import json
import subprocess
import sys
from typing import Final

from cluster import accounts, nodes, process
from cluster.cluster import GpuCluster
from cluster.programs import binaries
from tests.e2e.chaos import proxy
from tests.e2e.chaos.routes import Route

EXTENDER: Final = "vgpu-extender"
SCHEDULER: Final = "vgpu-scheduler"  # beside the extender, on the way that the extender has
WEBHOOK: Final = "vgpu-webhook"
PLUGIN: Final = "vgpu-deviceplugin"
_STATE_MIB: Final = 96


class ChaosCluster(GpuCluster):
    """Two nodes of four cards, as in the other tests; `routes` and `delay` change what a part reaches, by account."""

    routes: dict[str, Route]
    proxy: process.ClusterProcess

    def _make(self) -> None:
        for node in self.nodes:
            self._mount_state(node)
        super()._make()
        found = [EXTENDER, WEBHOOK, *(f"{PLUGIN}-{node.name}" for node in self.nodes)]
        self.routes = {account: Route(self.within.pid, index) for index, account in enumerate(found)}
        for account, route in (*self.routes.items(), (SCHEDULER, self.routes[EXTENDER])):
            self._redirect(account, route)
        self._start_proxy()

    def _mount_state(self, node: nodes.ClusterNode) -> None:
        """Give the plugin's state directory a disk of its own, so that filling it fills nothing else."""
        command = ["nsenter", "-t", str(node.mounts.pid), "-m", "mount", "-t", "tmpfs", "-o"]
        subprocess.run([*command, f"size={_STATE_MIB}m,mode=0755", "vgpu-state", "/var/lib/vgpu"], check=True)

    def _redirect(self, account: str, route: Route) -> None:
        path = accounts.path(self.work, account)
        content = json.loads(path.read_text())
        content["clusters"][0]["cluster"]["server"] = f"https://{route.address}:{proxy.PORT}"
        path.write_text(json.dumps(content))

    def _start_proxy(self) -> None:
        self.delay(0.0)
        command = [sys.executable, "-m", "tests.e2e.chaos.proxy", str(self.work / "proxy.json")]
        addresses = [route.address for route in self.routes.values()]
        environment = {"PYTHONPATH": str(binaries.REPOSITORY)}
        self.proxy = process.ClusterProcess(
            "proxy", [*command, *addresses], self.within, self.work / "logs", environment
        )
        self.proxy.start()

    def delay(self, seconds: float) -> None:
        """Delay every piece that a part sends to the API server or receives of it."""
        fresh = self.work / "proxy.json.new"
        fresh.write_text(json.dumps({route.address: seconds for route in self.routes.values()}))
        fresh.rename(self.work / "proxy.json")
