"""Accounts of the API server: static tokens for Kubernetes' own parts, and a kubeconfig for each account."""

import json
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

SERVER = "https://127.0.0.1:443"  # pods reach this port at 10.0.0.1, the address of the Service `kubernetes`


class UserAccount(NamedTuple):
    """A user the API server knows by a static token."""

    name: str
    user: str
    groups: str = ""

    @classmethod
    def of_node(cls, node: str) -> "UserAccount":
        return cls(node, f"system:node:{node}", "system:nodes")


ADMIN = UserAccount("admin", "admin", "system:masters")
SCHEDULER = UserAccount("scheduler", "system:kube-scheduler")
CONTROLLERS = UserAccount("controller-manager", "system:kube-controller-manager")
OPERATOR = "operator"  # an administrator with a client certificate and no token, as in kubeadm's admin.conf
TENANT = UserAccount("tenant", "tenant")  # rights on pods in the namespace `tenant`, by cluster/tenant.yaml


def write(work: Path, nodes: Sequence[str]) -> None:
    """Write pki/tokens.csv and one kubeconfig for each account."""
    all_accounts = [ADMIN, SCHEDULER, CONTROLLERS, TENANT, *map(UserAccount.of_node, nodes)]
    tokens = {account: secrets.token_urlsafe() for account in all_accounts}
    lines = (f'{token},{account.user},{account.name},"{account.groups}"\n' for account, token in tokens.items())
    (work / "pki" / "tokens.csv").write_text("".join(lines))
    for account, token in tokens.items():
        kubeconfig(work, account.name, token)
    pki = work / "pki"
    certificate = {"client-certificate": str(pki / "operator.crt"), "client-key": str(pki / "operator.key")}
    _write(work, OPERATOR, certificate)


def path(work: Path, name: str) -> Path:
    """Path of an account's kubeconfig."""
    return work / "config" / f"{name}.kubeconfig"


def kubeconfig(work: Path, name: str, token: str) -> Path:
    """Write a kubeconfig with this token; its default namespace is the tenant's for the tenant."""
    return _write(work, name, {"token": token})


def _write(work: Path, name: str, user: Mapping[str, str]) -> Path:
    cluster = {"server": SERVER, "certificate-authority": str(work / "pki" / "ca.crt")}
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "cluster",
        "contexts": [
            {"name": "cluster", "context": {"cluster": "cluster", "user": name, "namespace": _namespace(name)}}
        ],
        "clusters": [{"name": "cluster", "cluster": cluster}],
        "users": [{"name": name, "user": user}],
    }
    target = path(work, name)
    target.write_text(json.dumps(content, indent=1))
    target.chmod(0o600)
    return target


def _namespace(name: str) -> str:
    return TENANT.name if name == TENANT.name else "default"


def token(work: Path, name: str) -> str:
    """The token in an account's kubeconfig."""
    read: str = json.loads(path(work, name).read_text())["users"][0]["user"]["token"]
    return read
