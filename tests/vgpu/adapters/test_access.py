"""Where the API server is, by a pod's account or by a kubeconfig, and the token of the moment."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography.hazmat.primitives import serialization

from vgpu.adapters.kubernetes import access
from vgpu.domain.errors import KubernetesError
from webhook.certificates import signing

POD = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}


@pytest.fixture
def account(tmp_path: Path) -> Path:
    (tmp_path / "token").write_text("first\n")
    certificate = signing.new_authority(datetime.now(UTC)).certificate
    (tmp_path / "ca.crt").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    return tmp_path


@pytest.fixture
def written(tmp_path: Path) -> Callable[..., Path]:
    """Write a kubeconfig."""

    def written(user: dict[str, Any], **cluster: Any) -> Path:
        content = {
            "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1/", **cluster}}],
            "users": [{"name": "u", "user": user}],
        }
        path = tmp_path / "kubeconfig"
        path.write_text(yaml.safe_dump(content))
        return path

    return written


def test_a_pods_token_is_read_again_when_the_kubelet_has_renewed_it(account: Path) -> None:
    found = access.of_pod(POD, account)
    seconds = 0.0
    found = access.ApiAccess(found.url, found.tls, (account / "token").read_text, clock=lambda: seconds)
    assert found.headers() == {"Authorization": "Bearer first"}
    (account / "token").write_text("second")
    assert found.headers() == {"Authorization": "Bearer first"}
    seconds = access.TOKEN_AGE_S + 1
    assert found.headers() == {"Authorization": "Bearer second"}


@pytest.mark.parametrize(("host", "url"), [("10.0.0.1", "https://10.0.0.1:443"), ("fd00::1", "https://[fd00::1]:443")])
def test_a_pod_finds_the_api_server_by_its_environment(account: Path, host: str, url: str) -> None:
    assert access.of_pod(POD | {"KUBERNETES_SERVICE_HOST": host}, account).url == url


def test_what_a_pod_lacks_is_named(account: Path) -> None:
    with pytest.raises(KubernetesError, match="KUBERNETES_SERVICE_HOST"):
        access.of_pod({}, account)
    (account / "token").unlink()
    with pytest.raises(KubernetesError, match=r"account of the pod.*token"):
        access.of_pod(POD, account)
    (account / "ca.crt").write_text("no certificate")
    with pytest.raises(KubernetesError, match="account of the pod"):
        access.of_pod(POD, account)


def test_a_kubeconfigs_token_and_token_file(written: Callable[..., Path], tmp_path: Path) -> None:
    assert access.of_kubeconfig(written({"token": "t"})).headers() == {"Authorization": "Bearer t"}
    (tmp_path / "token.txt").write_text("of the file\n")
    found = access.of_kubeconfig(written({"tokenFile": "token.txt"}, **{"proxy-url": "http://127.0.0.1:3128"}))
    assert (found.headers(), found.proxy) == ({"Authorization": "Bearer of the file"}, "http://127.0.0.1:3128")
    assert access.of_kubeconfig(written({})).headers() == {}


@pytest.mark.parametrize(
    ("user", "words"),
    [
        ({"exec": {"command": "aws"}}, "no program is run for credentials"),
        ({"client-certificate-data": "!"}, "client-certificate-data is not base64"),
        ({"client-certificate": "/nonexistent"}, "client-certificate"),
    ],
)
def test_a_kubeconfig_that_cannot_be_used_is_refused(
    written: Callable[..., Path], user: dict[str, Any], words: str
) -> None:
    with pytest.raises(KubernetesError, match=words):
        access.of_kubeconfig(written(user))
    with pytest.raises(KubernetesError, match="cannot be read"):
        access.of_kubeconfig(Path("/nonexistent/kubeconfig"))
