"""A real cluster in which all parts of vgpushare are pods, from the images of `make images`.

with PodCluster() as cluster:
    cluster.install()
"""

import os
import platform
import tempfile
from functools import cache
from pathlib import Path

from cluster import bare, progress, wait
from cluster.programs import binaries, pinned
from images import build, kustomization, oci, scheduler
from release import identity

BASE = binaries.REPOSITORY / "manifests" / "base"
NAMESPACE = "vgpu-system"
WORKLOADS = ("deployment/vgpu-scheduler", "deployment/vgpu-webhook", "daemonset/vgpu-deviceplugin")

_READY_S = 120


@cache
def build_identity() -> identity.BuildIdentity:
    """What this checkout built when the first cluster was made: a file that is changed meanwhile changes nothing."""
    return identity.of_checkout()


class PodCluster(bare.BareCluster):
    """A cluster whose nodes have the images of vgpushare and of kube-scheduler; nothing of vgpushare is installed."""

    pod_network = True

    def archives(self) -> list[Path]:
        """Write the images that every node imports: those of tests, and one archive with all of vgpushare's."""
        archive = self.work / "vgpushare.tar"
        with tempfile.TemporaryDirectory(dir=self.work) as scratch:
            made = self.built(binaries.REPOSITORY, Path(scratch))
            made.append(scheduler.image(self.programs / "kube-scheduler", made[0].architecture, Path(scratch)))
            oci.write(made, archive)
        progress.say("images are built")
        return [*super().archives(), archive]

    @staticmethod
    def built(checkout: Path, scratch: Path) -> list[oci.Image]:
        """Build the images of a checkout, with this one's version as their tag; `scratch` holds their upper layer."""
        builder = build.Builder(pinned.cache() / "images", platform.machine(), project=checkout)
        return [built.image for built in builder.images(platform.machine(), scratch, build_identity())]

    def create_namespace(self, name: str) -> None:
        """Create a namespace, and return when its default account exists, which every pod needs."""
        super().create_namespace(name)
        account = f"/api/v1/namespaces/{name}/serviceaccounts/default"
        wait.until(lambda: self.api.find(account), f"default account of {name}", _READY_S)

    def overlay(self, base: Path = BASE) -> Path:
        """Return an overlay on `base` that names the images of this checkout."""
        folder, component = self.work / "overlays" / base.name, self.work / "overlays" / "build"
        for path in (folder, component):
            path.mkdir(parents=True, exist_ok=True)
        (component / "kustomization.yaml").write_text(kustomization.component(build_identity().tag))
        lines = f"resources: [{os.path.relpath(base, folder)}]", "components: [../build]"
        (folder / "kustomization.yaml").write_text("\n".join(lines))
        return folder

    def install(self, kustomization: Path | None = None) -> None:
        """Apply a kustomization, label the nodes, and return when pods with GPUs can run."""
        self.kubectl("apply", "-k", str(kustomization or self.overlay()))
        self.kubectl("label", "nodes", "--all", "vgpu.io/enabled=true")
        self.wait_until_ready()

    def wait_until_ready(self) -> None:
        """Return when pods with GPUs can run."""
        for workload in WORKLOADS:
            self.kubectl("rollout", "status", "-n", NAMESPACE, workload, f"--timeout={_READY_S}s")
        wait.until(self._offers, "slices on every node", _READY_S)
        progress.say("vgpushare is ready")

    def _offers(self) -> bool:
        nodes = self.api.get("/api/v1/nodes")["items"]
        return all(node["status"]["allocatable"].get("vgpu.io/slice", "0") != "0" for node in nodes)
