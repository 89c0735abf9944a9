"""The extender as a process: it starts from a kubeconfig, serves, and releases its Lease on SIGTERM."""

import asyncio
import contextlib
import ipaddress
import itertools
import os
import resource
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, get_args

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from extender.settings import ExtenderSettings, Policy
from tests import kubeconfigs, strategies
from vgpu.adapters import settings
from vgpu.domain import names
from vgpu.domain.asks.policy import PackingPolicy
from vgpu.simulator.api import server

pytestmark = pytest.mark.heavy

POD = strategies.admit(strategies.pod(strategies.container(gpu_mem=256))) | {"metadata": {"name": "p"}}
LEASE = f"/apis/coordination.k8s.io/v1/namespaces/{names.NAMESPACE}/leases/vgpu-extender"
CHILDREN = 2  # the admin's process and the drain
ENDS_S = 2.5  # of it 1 s is for these processes; the rest is for a busy machine


def test_every_policy_of_a_pod_may_be_the_default() -> None:
    assert set(get_args(Policy)) == {policy.value for policy in PackingPolicy}


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


def leave_descriptors(pid: int, count: int) -> None:
    """Let a process open only `count` more files."""
    most = len(list(Path(f"/proc/{pid}/fd").iterdir())) + count
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (most, most))


def processor_s(pid: int) -> float:
    """Return the processor time of a process in seconds."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def until_ready(http: httpx.AsyncClient, url: str) -> None:
    async with asyncio.timeout(30):
        while True:
            try:
                if (await http.get(url)).is_success:
                    return
            except httpx.TransportError:
                pass
            await asyncio.sleep(0.05)


async def holder(http: httpx.AsyncClient, url: str) -> str:
    lease = (await http.get(url + LEASE)).json()
    found: str = lease.get("spec", {}).get("holderIdentity", "")
    return found


def certificate(folder: Path, name: str, issuer: tuple[x509.Name, ec.EllipticCurvePrivateKey] | None = None) -> Any:
    """Write NAME.crt and NAME.key, signed by the issuer or self-signed; return certificate and key as an issuer."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    issuer_name, issuer_key = issuer or (subject, key)
    address = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    signed = (
        x509.CertificateBuilder(issuer_name, subject, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.BasicConstraints(ca=issuer is None, path_length=None), critical=True)
        .add_extension(address, critical=False)
        .sign(issuer_key, hashes.SHA256())
    )
    (folder / f"{name}.crt").write_bytes(signed.public_bytes(Encoding.PEM))
    (folder / f"{name}.key").write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return subject, key


async def test_mutual_tls_refuses_clients_without_a_known_certificate(tmp_path: Path) -> None:
    authority = certificate(tmp_path, "ca")
    certificate(tmp_path, "server", authority)
    certificate(tmp_path, "client", authority)
    certificate(tmp_path, "kubelet", authority)
    numbers = itertools.count(1)
    api = server.make_cluster(lambda: datetime.now(UTC), lambda: f"{next(numbers):08x}-uid")
    port = free_port()
    trust = ssl.create_default_context(cafile=str(tmp_path / "ca.crt"))
    known = ssl.create_default_context(cafile=str(tmp_path / "ca.crt"))
    known.load_cert_chain(tmp_path / "client.crt", tmp_path / "client.key")
    other = ssl.create_default_context(cafile=str(tmp_path / "ca.crt"))
    other.load_cert_chain(tmp_path / "kubelet.crt", tmp_path / "kubelet.key")
    flags = [
        "--client-names=scheduler, client",
        "--tls-cert",
        "server.crt",
        "--tls-key",
        "server.key",
        "--client-ca",
        "ca.crt",
        "--identity=me",
    ]
    flags = [str(tmp_path / flag) if flag.endswith((".crt", ".key")) else flag for flag in flags]
    async with server.serving(api) as url, httpx.AsyncClient(verify=known) as friend:
        where = [f"--kubeconfig={kubeconfigs.write(tmp_path, url)}", f"--listen=127.0.0.1:{port}"]
        process = await asyncio.create_subprocess_exec(sys.executable, "-m", "extender", *where, *flags)
        try:
            await until_ready(friend, f"https://127.0.0.1:{port}/readyz")
            for context in (trust, other):  # without a certificate; with another name from the same CA
                async with httpx.AsyncClient(verify=context) as stranger:
                    with pytest.raises(httpx.TransportError):
                        await stranger.get(f"https://127.0.0.1:{port}/healthz")
        finally:
            process.terminate()
            assert await asyncio.wait_for(process.wait(), 20) == 0


async def test_two_processes_of_one_name_have_two_identities(tmp_path: Path) -> None:
    """Two extenders with the host's network, or with one name in their settings, must not both hold the Lease."""
    numbers = itertools.count(1)
    api = server.make_cluster(lambda: datetime.now(UTC), lambda: f"{next(numbers):08x}-uid")
    async with server.serving(api) as url, httpx.AsyncClient() as http:
        processes = []
        ports = [free_port(), free_port()]
        for port in ports:
            flags = [f"--kubeconfig={kubeconfigs.write(tmp_path, url)}", f"--listen=127.0.0.1:{port}", "--identity=me"]
            processes.append(await asyncio.create_subprocess_exec(sys.executable, "-m", "extender", *flags))
        try:
            for port in ports:
                await until_ready(http, f"http://127.0.0.1:{port}/readyz")
            await asyncio.sleep(0.5)
            call = {"PodName": "p", "PodNamespace": "default", "PodUID": "u", "Node": "n1"}
            await http.post(f"{url}/api/v1/namespaces/default/pods", json=POD)
            call["PodUID"] = (await http.get(f"{url}/api/v1/namespaces/default/pods/p")).json()["metadata"]["uid"]
            answers = [(await http.post(f"http://127.0.0.1:{port}/bind", json=call)).json()["Error"] for port in ports]
            assert len([answer for answer in answers if answer.startswith("NotLeader")]) == 1
        finally:
            for process in processes:
                process.terminate()
            await asyncio.gather(*(process.wait() for process in processes))


async def test_a_killed_extender_leaves_no_admin_rest_behind(tmp_path: Path) -> None:
    api = server.make_cluster(lambda: datetime.now(UTC), lambda: "uid")
    port, rest = free_port(), free_port()
    async with server.serving(api) as url, httpx.AsyncClient() as http:
        flags = [f"--kubeconfig={kubeconfigs.write(tmp_path, url)}", f"--listen=127.0.0.1:{port}"]
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "extender", *flags, f"--admin-listen=127.0.0.1:{rest}"
        )
        await until_ready(http, f"http://127.0.0.1:{rest}/healthz")
        process.kill()
        await process.wait()
        async with asyncio.timeout(20):
            while True:
                try:
                    socket.create_connection(("127.0.0.1", rest)).close()
                except ConnectionRefusedError:
                    return
                await asyncio.sleep(0.05)


async def test_it_serves_and_releases_its_lease(tmp_path: Path) -> None:
    numbers = itertools.count(1)
    api = server.make_cluster(lambda: datetime.now(UTC), lambda: f"{next(numbers):08x}-uid")
    port = free_port()
    async with server.serving(api) as url, httpx.AsyncClient() as http:
        flags = [f"--kubeconfig={kubeconfigs.write(tmp_path, url)}", f"--listen=127.0.0.1:{port}", "--identity=me"]
        process = await asyncio.create_subprocess_exec(sys.executable, "-m", "extender", *flags)
        try:
            await until_ready(http, f"http://127.0.0.1:{port}/readyz")
            async with asyncio.timeout(10):
                while not (await holder(http, url)).startswith("me_"):
                    await asyncio.sleep(0.02)
            refused = await http.post(f"http://127.0.0.1:{port}/filter", content=b"{}")
            assert (refused.status_code, refused.json()["Error"][:4]) == (400, "Pod:")
            process.send_signal(signal.SIGTERM)
            assert await asyncio.wait_for(process.wait(), 20) == 0
        finally:
            if process.returncode is None:
                process.kill()
        assert await holder(http, url) == ""


def test_the_process_of_the_verbs_imports_no_library_of_the_other_processes() -> None:
    """Pods wait for its start after each restart."""
    script = "import sys, extender.__main__, extender.serving; print(*sys.modules)"
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    assert not {"sqlalchemy", "alembic", "cryptography", "psycopg"} & set(found)


@contextlib.asynccontextmanager
async def extender_with_children(folder: Path) -> AsyncIterator[tuple[asyncio.subprocess.Process, str]]:
    """An extender with a history and an admin REST, whose URL is yielded too."""
    api = server.make_cluster(lambda: datetime.now(UTC), lambda: "uid")
    rest = free_port()
    async with server.serving(api) as url, httpx.AsyncClient() as http:
        flags = [f"--kubeconfig={kubeconfigs.write(folder, url)}", f"--listen=127.0.0.1:{free_port()}"]
        flags += [f"--history-dir={folder}/history", f"--admin-listen=127.0.0.1:{rest}"]
        process = await asyncio.create_subprocess_exec(sys.executable, "-m", "extender", *flags)
        try:
            await until_ready(http, f"http://127.0.0.1:{rest}/healthz")
            async with asyncio.timeout(20):
                while len(children(process.pid)) < CHILDREN:
                    await asyncio.sleep(0.05)
            yield process, f"http://127.0.0.1:{rest}"
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def is_running(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


async def seconds_until_stopped(process: asyncio.subprocess.Process) -> float:
    begun = time.monotonic()
    process.terminate()
    assert await asyncio.wait_for(process.wait(), 20) == 0
    return time.monotonic() - begun


async def test_a_stop_does_not_wait_for_processes_that_get_no_processor(tmp_path: Path) -> None:
    """The admin's process and the drain have the lowest priority: on a busy machine they do not end by themselves."""
    async with extender_with_children(tmp_path) as (process, _):
        stopped = children(process.pid)
        for pid in stopped:
            os.kill(pid, signal.SIGSTOP)
        assert await seconds_until_stopped(process) < ENDS_S
        assert not any(map(is_running, stopped))


async def test_a_stop_does_not_wait_for_a_stream_of_events(tmp_path: Path) -> None:
    """A dashboard that is open has one."""
    async with extender_with_children(tmp_path) as (process, rest), httpx.AsyncClient() as http:
        accept = {"Accept": "text/event-stream"}
        async with http.stream("GET", f"{rest}/api/v1/events", headers=accept) as stream:
            assert stream.is_success
            assert await seconds_until_stopped(process) < ENDS_S


async def test_it_leads_beside_the_holder_of_the_followed_lease_only(tmp_path: Path) -> None:
    """Without that Lease it is ready and answers, also why no pod is bound."""
    numbers = itertools.count(1)
    api = server.make_cluster(lambda: datetime.now(UTC), lambda: f"{next(numbers):08x}-uid")
    port, rest = free_port(), free_port()
    async with server.serving(api) as url, httpx.AsyncClient() as http:
        flags = [f"--kubeconfig={kubeconfigs.write(tmp_path, url)}", f"--listen=127.0.0.1:{port}"]
        flags += [f"--admin-listen=127.0.0.1:{rest}", "--scheduler-lease=kube-system/kube-scheduler"]
        process = await asyncio.create_subprocess_exec(sys.executable, "-m", "extender", *flags)
        try:
            for at in (f"http://127.0.0.1:{port}/readyz", f"http://127.0.0.1:{rest}/healthz"):
                await until_ready(http, at)
            summary = (await http.get(f"http://127.0.0.1:{rest}/api/v1/summary")).text
            assert "no pod is bound; Lease kube-system/kube-scheduler, which says where" in summary
            leases = f"{url}/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
            held = {"holderIdentity": f"{socket.gethostname()}_1", "leaseDurationSeconds": 15}
            await http.post(leases, json={"metadata": {"name": "kube-scheduler"}, "spec": held})
            async with asyncio.timeout(10):
                while not await holder(http, url):
                    await asyncio.sleep(0.02)
        finally:
            process.terminate()
            await process.wait()


async def test_without_a_free_file_descriptor_kept_connections_are_served_and_the_processor_is_idle(
    tmp_path: Path,
) -> None:
    """asyncio tries accept as many times a second as the backlog says, and logs each failure."""
    api = server.make_cluster(lambda: datetime.now(UTC), lambda: "uid")
    port = free_port()
    async with server.serving(api) as url, httpx.AsyncClient() as kept, httpx.AsyncClient() as later:
        flags = [f"--kubeconfig={kubeconfigs.write(tmp_path, url)}", f"--listen=127.0.0.1:{port}", "--identity=me"]
        process = await asyncio.create_subprocess_exec(sys.executable, "-m", "extender", *flags)
        try:
            await until_ready(kept, f"http://127.0.0.1:{port}/readyz")
            leave_descriptors(process.pid, 4)
            before, begun = processor_s(process.pid), time.monotonic()
            many = [socket.create_connection(("127.0.0.1", port)) for _ in range(50)]
            for _ in range(20):
                assert (await kept.get(f"http://127.0.0.1:{port}/healthz")).is_success
                await asyncio.sleep(0.1)
            assert processor_s(process.pid) - before < (time.monotonic() - begun) / 2
            for connection in many:
                connection.close()
            await until_ready(later, f"http://127.0.0.1:{port}/readyz")
        finally:
            process.terminate()
            assert await asyncio.wait_for(process.wait(), 20) == 0


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--listen=0.0.0.0:9870"], "not loopback"),
        (["--listen=nonsense"], "listen"),
        (["--tls-cert=/x"], "give all of tls-cert, tls-key and client-ca, or none"),
        (["--tls-cert=/x", "--tls-key=/x", "--client-ca=/x"], "client-names: name the certificates"),
        (["--node-policy=pack"], "binpack"),
        (["--scheduler-lease=a/b/c"], '"a/b/c" must be NAME or NAMESPACE/NAME of a Lease'),
        (["--log-level=info", "--hitory-url=x"], "--hitory-url: there is no such option; did you mean --history-url?"),
    ],
    ids=["open", "no address", "half of TLS", "no names", "unknown policy", "no lease", "unknown option"],
)
def test_an_invalid_setting_is_named(
    flags: list[str], words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["extender", *flags])
    with pytest.raises(SystemExit) as ended:
        settings.read(ExtenderSettings, os.environ)
    assert ended.value.code == 2
    assert words in capsys.readouterr().err


async def test_an_invalid_setting_ends_the_process() -> None:
    flags = ["-m", "extender", "--listen=nonsense"]
    process = await asyncio.create_subprocess_exec(sys.executable, *flags, stderr=asyncio.subprocess.PIPE)
    _, stderr = await process.communicate()
    assert process.returncode == 2
    assert b"listen" in stderr
