"""The credentials of a kubeconfig's user: a token, a client certificate, or a program that prints one of them.

https://kubernetes.io/docs/reference/access-authn-authz/authentication/#client-go-credential-plugins
"""

import json
import os
import ssl
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from vgpu.cli.cluster import kubeconfig
from vgpu.cli.failure import NOT_ALLOWED, WRONG_USAGE, CommandFailed
from vgpu.domain.json_types import Json

PLUGIN_TIMEOUT_S: Final = 60


@dataclass(frozen=True, slots=True)
class Credentials:
    """What a client shows to the API server. Everything may be empty."""

    token: str = ""
    certificate: bytes = b""
    key: bytes = b""


def of(user: Json, environment: Mapping[str, str]) -> Credentials:
    """Return the credentials of a user entry. Raises CommandFailed."""
    if isinstance(user.get("exec"), dict):
        return _of_plugin(user["exec"], environment)
    token = str(user.get("token") or "")
    if not token and user.get("tokenFile"):
        token = (kubeconfig.data({"token": user["tokenFile"]}, "token") or b"").decode(errors="replace").strip()
    certificate, key = (kubeconfig.data(user, name) or b"" for name in ("client-certificate", "client-key"))
    return Credentials(token, certificate, key)


def add_certificate(context: ssl.SSLContext, shown: Credentials) -> None:
    """Load a client certificate into a TLS context, through a file in memory: Python loads certificates from files."""
    if not shown.certificate:
        return
    handle = os.memfd_create("client-certificate")
    try:
        os.write(handle, shown.certificate + b"\n" + shown.key)
        context.load_cert_chain(f"/proc/self/fd/{handle}")
    except (ssl.SSLError, ValueError) as error:
        raise CommandFailed(f"kubeconfig: the client certificate cannot be used: {error}", WRONG_USAGE) from error
    finally:
        os.close(handle)


def _of_plugin(plugin: Json, environment: Mapping[str, str]) -> Credentials:
    command = [str(plugin.get("command", "")), *map(str, kubeconfig.listed(plugin, "args"))]
    asked = {"apiVersion": plugin.get("apiVersion"), "kind": "ExecCredential", "spec": {"interactive": False}}
    more = {
        str(variable["name"]): str(variable["value"])
        for variable in kubeconfig.listed(plugin, "env")
        if isinstance(variable, dict) and variable.keys() >= {"name", "value"}
    }
    try:
        done = subprocess.run(
            command,
            env={**environment, **more, "KUBERNETES_EXEC_INFO": json.dumps(asked)},
            stdout=subprocess.PIPE,
            timeout=PLUGIN_TIMEOUT_S,
            check=True,
        )
        status = dict(json.loads(done.stdout).get("status") or {})
    except (OSError, subprocess.SubprocessError, ValueError, TypeError, AttributeError, RecursionError) as error:
        raise CommandFailed(f"the credential plugin {Path(command[0]).name} failed: {error}", NOT_ALLOWED) from error
    certificate, key = (str(status.get(name) or "").encode() for name in ("clientCertificateData", "clientKeyData"))
    return Credentials(str(status.get("token") or ""), certificate, key)
