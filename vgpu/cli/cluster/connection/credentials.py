"""The credentials of a kubeconfig's user: a token, a client certificate, or a program that prints one of them.

https://kubernetes.io/docs/reference/access-authn-authz/authentication/#client-go-credential-plugins
"""

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from vgpu.adapters import kubeconfig
from vgpu.adapters.kubeconfig import Credentials
from vgpu.cli.failure import NOT_ALLOWED, CommandFailed
from vgpu.domain.json_types import Json

PLUGIN_TIMEOUT_S: Final = 60


def of(user: Json, environment: Mapping[str, str]) -> Credentials:
    """Return the credentials of a user entry. Raises CommandFailed and KubeconfigError."""
    if isinstance(user.get("exec"), dict):
        return _of_plugin(user["exec"], environment)
    return kubeconfig.written_credentials(user)


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
