"""A real cluster with vgpushare installed from manifests/: by default two nodes of four simulated cards.

    with Cluster() as cluster:
        cluster.plugins[0].kill()

`python -m cluster` (`make cluster`) runs a cluster until Ctrl-C.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cluster import admin_service, bare, parts, progress
from cluster.process import ClusterProcess

OVERLAY = Path(__file__).parent / "overlay"
TENANT = Path(__file__).parent / "tenant.yaml"


class GpuCluster(bare.BareCluster):
    """A cluster in which pods may ask for shares of a GPU."""

    maker: parts.Maker
    extender: parts.ClusterPart
    scheduler: parts.ClusterPart
    webhook: parts.ClusterPart
    plugins: list[parts.ClusterPart]

    def start(self) -> None:
        """Start everything and return when pods with GPUs can run."""
        super().start()
        progress.say(f"{len(self.nodes)} nodes are Ready")
        self.kubectl("apply", "-k", str(OVERLAY))
        self.kubectl("apply", "-f", str(TENANT))
        admin_service.install(self.api, parts.NAMESPACE)
        self.kubectl("label", "nodes", "--all", "vgpu.io/enabled=true")
        self._make()
        for part in self.parts:
            part.start(wait_ready=False)
        for part in self.parts:
            part.wait_ready()
        progress.say("vgpushare is ready")

    def _make(self) -> None:
        self.maker = parts.Maker(self)
        self.extender = self.maker.extender()
        self.scheduler = self.maker.scheduler()
        self.webhook = self.maker.webhook()
        self.plugins = [self.maker.plugin(node) for node in self.nodes]

    @contextmanager
    def extender_with(self, **settings: str) -> Iterator[None]:
        """Run the extender with other settings inside the block: `node_policy="spread"` is `--node-policy=spread`."""
        self.extender.restart(*(f"--{name.replace('_', '-')}={value}" for name, value in settings.items()))
        try:
            yield
        finally:
            self.extender.restart()

    def start_ended(self) -> None:
        """Start each part that has ended by itself or was killed; returns before the parts are ready."""
        for part in self.parts:
            if not part.process.running():
                part.stop()  # takes the exit status
                part.start(wait_ready=False)

    @property
    def parts(self) -> list[parts.ClusterPart]:
        """All parts of vgpushare and their scheduler."""
        return [self.extender, self.webhook, *self.plugins, self.scheduler]

    @property
    def processes(self) -> list[ClusterProcess]:
        """Every process of the cluster: those of Kubernetes, of its nodes, and of vgpushare."""
        of_nodes = [process for node in self.nodes for process in (node.containerd, node.kubelet)]
        return [*self.control.processes, *of_nodes, *(part.process for part in self.parts)]

    def close(self) -> None:
        """End every process; returns when nothing is left of the cluster."""
        maker: parts.Maker | None = getattr(self, "maker", None)
        if maker:
            maker.close()
        super().close()
