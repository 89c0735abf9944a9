"""Kueue on a cluster: its CRDs, its accounts and its webhooks as its manifests have them, its manager as a process.

The manager gets certificates as cert-manager would give them, in files, because no kubelet mounts its Secret.
"""

import base64
from pathlib import Path
from typing import Any, Final

import yaml

from cluster import accounts, bare, pki, process, wait
from cluster.programs import kueue

NAMESPACE: Final = "kueue-system"

_ACCOUNT: Final = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/kueue-controller-manager/token"
_PORT: Final = 9444  # of its webhooks; that of vgpushare has 9443
_URL: Final = f"https://127.0.0.1:{_PORT}"
_CRD: Final = "CustomResourceDefinition"
_LEFT_OUT: Final = ("Deployment", "APIService", "Service")
_METRICS_CERTIFICATE: Final = "kueue/metrics/certs"  # below /etc; the manager has no setting for it
_LABEL: Final = "app.kubernetes.io/name=kueue"
_DAY_S: Final = 86400
_READY_S: Final = 120
_WITH_ETC: Final = 'mount -t overlay -o "lowerdir=/etc,upperdir=$1,workdir=$2" overlay /etc && shift 2 && exec "$@"'

Json = dict[str, Any]


class Kueue:
    """Kueue with a configuration, installed on a running cluster; `start` returns when its webhooks answer."""

    def __init__(self, cluster: bare.BareCluster, configuration: Json) -> None:
        self._cluster = cluster
        self._built = kueue.ensure()
        self._work = cluster.work / "kueue"
        self._certificate = pki.write_server(self._work / "certificate")
        pki.write_server(self._work / "etc" / _METRICS_CERTIFICATE)
        (self._work / "overlay").mkdir()
        self._configuration = configuration
        self.process: process.ClusterProcess | None = None

    def start(self) -> None:
        """Apply the manifests, start the manager and wait for its webhooks."""
        printed = self._cluster.kubectl("kustomize", str(self._built / kueue.MANIFESTS / "default"))
        objects = [
            manifest for manifest in yaml.load_all(printed, yaml.CSafeLoader) if manifest["kind"] not in _LEFT_OUT
        ]
        for manifest in objects:
            self._call_by_address(manifest)
        self._cluster.kubectl(
            "apply", "--server-side", "-f", "-", stdin=yaml.dump_all(objects, Dumper=yaml.CSafeDumper)
        )
        kinds = {manifest["metadata"]["name"] for manifest in objects if manifest["kind"] == _CRD}
        # A manager that does not find its kinds ends.
        wait.until(lambda: kinds <= self._served(), "the API server to serve Kueue's kinds", _READY_S)
        self.process = self._process()
        self.process.start()
        wait.until(self._answers, "Kueue's webhooks", _READY_S, [self.process])

    def stop(self) -> None:
        """Remove Kueue's objects while its manager takes off their finalizers, then its webhooks and the manager."""
        for kind in ("crd", "mutatingwebhookconfiguration", "validatingwebhookconfiguration"):
            self._cluster.kubectl("delete", kind, "-l", _LABEL, "--timeout=60s")
        if self.process:
            self.process.stop()

    def _call_by_address(self, made: Json) -> None:
        """Replace the Service in the clients of webhooks by the manager's address: there is no pod network."""
        conversion = made.get("spec", {}).get("conversion") if made["kind"] == _CRD else None
        clients = [webhook["clientConfig"] for webhook in made.get("webhooks", [])]
        clients += [conversion["webhook"]["clientConfig"]] if conversion else []
        for client in clients:
            client["url"] = _URL + client.pop("service")["path"]
            client["caBundle"] = base64.b64encode(self._certificate).decode()

    def _process(self) -> process.ClusterProcess:
        work = self._work
        command: list[str | Path] = ["unshare", "--mount", "sh", "-c", _WITH_ETC, "sh", work / "etc", work / "overlay"]
        command += [self._built / kueue.PROGRAM, f"--config={self._settings()}", f"--kubeconfig={self._kubeconfig()}"]
        return process.ClusterProcess("kueue", command, self._cluster.within, self._cluster.work / "logs")

    def _settings(self) -> Path:
        added: Json = {
            "apiVersion": "config.kueue.x-k8s.io/v1beta2",
            "kind": "Configuration",
            "namespace": NAMESPACE,
            "health": {"healthProbeBindAddress": "127.0.0.1:9445"},
            "metrics": {"bindAddress": "127.0.0.1:9446"},
            "webhook": {"host": "127.0.0.1", "port": _PORT, "certDir": str(self._work / "certificate")},
            "internalCertManagement": {"enable": False},
            "leaderElection": {"leaderElect": False},
            "featureGates": {"VisibilityOnDemand": False},  # an API server of its own
        }
        file = self._work / "configuration.yaml"
        file.write_text(yaml.safe_dump(self._configuration | added))
        return file

    def _kubeconfig(self) -> Path:
        kind = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": _DAY_S}}
        token = self._cluster.api.create(_ACCOUNT, kind)["status"]["token"]
        return accounts.kubeconfig(self._cluster.work, "kueue", token)

    def _served(self) -> set[str]:
        return set(self._cluster.kubectl("api-resources", "-o", "name", check=False).split())

    def _answers(self) -> bool:
        """Whether the API server reaches the webhooks of Jobs and of ResourceFlavors and trusts their certificate."""
        flavor = {
            "apiVersion": "kueue.x-k8s.io/v1beta2",
            "kind": "ResourceFlavor",
            "metadata": {"name": "is-kueue-there"},
        }
        done = self._cluster.kubectl("create", "--dry-run=server", "-f", "-", stdin=yaml.safe_dump(flavor), check=False)
        return "created (server dry run)" in done
