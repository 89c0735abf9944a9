"""Where the API server is and what is shown to it: by the account of the pod, or by a kubeconfig.

The kubelet renews the token of a pod's account in its file, so the file is read again. A token that a kubeconfig
contains stays as it is.
"""

import os
import ssl
import time  # noqa: TID251 - the default of an argument; the age of a token decides nothing
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from vgpu.adapters import kubeconfig
from vgpu.adapters.kubeconfig import KubeconfigError
from vgpu.domain.errors import KubernetesError

ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
TOKEN_AGE_S: Final = 60.0  # the kubelet renews a token minutes before it expires


class ApiAccess:
    """The API server's URL, TLS and the token of the moment.

    Args:
        url: without a path.
        tls: None for http.
        read_token: returns the token as it is now; empty for none.
        proxy: URL of a proxy, or empty.
        clock: monotonic, in seconds.
    """

    def __init__(
        self,
        url: str,
        tls: ssl.SSLContext | None,
        read_token: Callable[[], str],
        proxy: str = "",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.url = url.rstrip("/")
        self.tls = tls
        self.proxy = proxy
        self._read_token = read_token
        self._clock = clock
        self._token = ""
        self._read_at = float("-inf")

    def headers(self) -> Mapping[str, str]:
        """Return the headers that authenticate a request. Raises OSError where the token's file cannot be read."""
        if self._clock() - self._read_at > TOKEN_AGE_S:
            self._token, self._read_at = self._read_token().strip(), self._clock()
        return {"Authorization": f"Bearer {self._token}"} if self._token else {}


def of_pod(
    environment: Mapping[str, str] = os.environ,  # noqa: TID251 - every client in a pod finds the API server by it
    account: Path = ACCOUNT,
) -> ApiAccess:
    """Return the access of the pod's account. Raises KubernetesError."""
    host, port = environment.get("KUBERNETES_SERVICE_HOST", ""), environment.get("KUBERNETES_SERVICE_PORT", "")
    if not host or not port:
        raise _unusable("this is no pod: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set")
    try:
        tls = ssl.create_default_context(cafile=str(account / "ca.crt"))
        found = ApiAccess(f"https://{_bracketed(host)}:{port}", tls, (account / "token").read_text)
        found.headers()
    except (OSError, ssl.SSLError) as error:
        raise _unusable(f"the account of the pod: {error}") from error
    return found


def of_kubeconfig(path: Path) -> ApiAccess:
    """Return the access of a kubeconfig's current context. Raises KubernetesError."""
    try:
        config = kubeconfig.load([path], None)
        if config.user.get("exec"):
            raise _unusable(f"{path}: no program is run for credentials; write a token, a tokenFile or a certificate")
        shown = kubeconfig.written_credentials(config.user)
        url = str(config.cluster["server"])
        tls = kubeconfig.tls_context(config.cluster, shown) if url.startswith("https") else None
    except KubeconfigError as error:
        raise _unusable(str(error)) from error
    proxy = str(config.cluster.get("proxy-url") or "")
    return ApiAccess(url, tls, lambda: kubeconfig.written_credentials(config.user).token, proxy)


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _unusable(text: str) -> KubernetesError:
    return KubernetesError(0, "Configuration", text)
