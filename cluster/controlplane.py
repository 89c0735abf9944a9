"""etcd, kube-apiserver, kube-controller-manager and the default kube-scheduler, as processes on one network."""

import json
from pathlib import Path
from typing import Any

from cluster import accounts, namespace, process

AUDIT = "audit.log"

_ETCD = "http://127.0.0.1:2379"
_PEER = "http://127.0.0.1:2380"
_READING = ["get", "list", "watch"]
_AUDIT_POLICY: dict[str, Any] = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {"level": "None", "verbs": _READING},
        # The audit log has the bodies of all writes that change the load of a card: tests replay the log.
        {
            "level": "RequestResponse",
            "resources": [{"group": "", "resources": ["pods", "pods/binding", "pods/status", "pods/eviction"]}],
        },
        {"level": "Metadata"},
    ],
}


class ControlPlane:
    """The control plane of one cluster, its files in `work`; with `tokens` pods get their accounts' tokens."""

    def __init__(self, binaries: Path, work: Path, within: namespace.LinuxNamespaces, *, tokens: bool = False) -> None:
        self._binaries = binaries
        self._work = work
        self._within = within
        self.etcd = self._process("etcd", "etcd", _etcd_flags(work))
        self.apiserver = self._process(
            "kube-apiserver", binaries / "kube-apiserver", _apiserver_flags(work, tokens=tokens)
        )
        self.controllers = self._process(
            "kube-controller-manager", binaries / "kube-controller-manager", _controller_flags(work, tokens=tokens)
        )
        self.scheduler = self.scheduler_of("kube-scheduler", accounts.SCHEDULER.name, {}, port=10259)

    @property
    def audit(self) -> Path:
        """The API server's audit log: one JSON event on each line."""
        return self._work / "logs" / AUDIT

    @property
    def processes(self) -> list[process.ClusterProcess]:
        return [self.etcd, self.apiserver, self.controllers, self.scheduler]

    def start_store(self) -> None:
        """Start etcd and the API server, whose readiness the others need."""
        (self._work / "config" / "audit.json").write_text(json.dumps(_AUDIT_POLICY))
        self.etcd.start()
        self.apiserver.start()

    def start_controllers(self) -> None:
        self.controllers.start()
        self.scheduler.start()

    def scheduler_of(
        self,
        name: str,
        account: str,
        configuration: dict[str, Any],
        port: int,
        host: str = "",
        program: Path | None = None,
    ) -> process.ClusterProcess:
        """Make a kube-scheduler process with an account's kubeconfig and a KubeSchedulerConfiguration.

        With a `host` the process has this host name, and takes part in the election of a leader. `program` is
        another kube-scheduler than the cluster's.
        """
        kubeconfig = accounts.path(self._work, account)
        content = configuration | {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "clientConnection": configuration.get("clientConnection", {}) | {"kubeconfig": str(kubeconfig)},
            "leaderElection": configuration.get("leaderElection", {}) | {"leaderElect": bool(host)},
        }
        file = self._work / "config" / f"{name}.json"
        file.write_text(json.dumps(content))
        flags = [
            f"--config={file}",
            f"--secure-port={port}",
            f"--cert-dir={self._work}/pki/{name}",
            *_delegated(kubeconfig),
        ]
        return self._process(name, program or self._binaries / "kube-scheduler", flags, host)

    def _process(self, name: str, program: str | Path, flags: list[str], host: str = "") -> process.ClusterProcess:
        return process.ClusterProcess(name, [program, *flags], self._within, self._work / "logs", host=host)


def _etcd_flags(work: Path) -> list[str]:
    return [
        f"--data-dir={work}/etcd",
        f"--listen-client-urls={_ETCD}",
        f"--advertise-client-urls={_ETCD}",
        f"--listen-peer-urls={_PEER}",
        f"--initial-advertise-peer-urls={_PEER}",
        f"--initial-cluster=default={_PEER}",
        "--logger=zap",
        "--log-outputs=stderr",
    ]


def _apiserver_flags(work: Path, *, tokens: bool) -> list[str]:
    pki_folder = work / "pki"
    return [
        f"--etcd-servers={_ETCD}",
        "--bind-address=0.0.0.0",
        "--advertise-address=127.0.0.1",
        "--secure-port=443",
        "--enable-aggregator-routing=true",  # to the pods of a webhook: there is no kube-proxy
        f"--tls-cert-file={pki_folder}/api.crt",
        f"--tls-private-key-file={pki_folder}/api.key",
        f"--client-ca-file={pki_folder}/ca.crt",
        f"--token-auth-file={pki_folder}/tokens.csv",
        "--authorization-mode=Node,RBAC",
        f"--service-account-issuer={accounts.SERVER}",
        f"--service-account-key-file={pki_folder}/sa.pub",
        f"--service-account-signing-key-file={pki_folder}/sa.key",
        "--service-cluster-ip-range=10.0.0.0/24",
        "--endpoint-reconciler-type=none",
        "--allow-privileged=true",
        f"--requestheader-client-ca-file={pki_folder}/ca.crt",  # without it the schedulers log errors all the time
        "--requestheader-allowed-names=front-proxy",
        "--requestheader-username-headers=X-Remote-User",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        *([] if tokens else ["--disable-admission-plugins=ServiceAccount"]),  # pods without tokens start sooner
        f"--audit-policy-file={work}/config/audit.json",
        f"--audit-log-path={work}/logs/{AUDIT}",
        "--audit-log-mode=blocking",
        "--audit-log-maxsize=100000",  # MB: a rotation would move the beginning of what tests read into another file
    ]


def _controller_flags(work: Path, *, tokens: bool) -> list[str]:
    kubeconfig = accounts.path(work, accounts.CONTROLLERS.name)
    return [
        f"--kubeconfig={kubeconfig}",
        "--leader-elect=false",
        f"--service-account-private-key-file={work}/pki/sa.key",
        "--use-service-account-credentials=true",
        *([f"--root-ca-file={work}/pki/ca.crt"] if tokens else []),
        f"--cert-dir={work}/pki/controller-manager",
        *_delegated(kubeconfig),
    ]


def _delegated(kubeconfig: Path) -> list[str]:
    return [
        "--bind-address=127.0.0.1",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
    ]
