"""The reasons for which a machine cannot run the cluster."""

from pathlib import Path

import pytest

from cluster import missing
from cluster.programs import binaries


def test_a_checkout_below_a_nodes_own_folders_is_a_reason() -> None:
    reasons = missing.reasons([Path("/home/user/vgpushare"), Path("/var/lib/ci/vgpushare")])
    assert "/var/lib/ci/vgpushare outside /run, /var/lib, /var/log" in reasons


def test_missing_programs_are_named_by_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(missing, "_SEARCH", "/nonexistent")
    assert missing.packages() == ["busybox-static", "containerd", "etcd-server", "iproute2", "runc"]
    reasons = missing.reasons([])
    assert "apt-get, or busybox-static containerd etcd-server iproute2 runc" in reasons


def test_provided_binaries_are_used_only_when_complete(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path))
    for program in binaries.PROGRAMS:
        assert binaries._provided() is None
        (tmp_path / program).touch()
    assert binaries._provided() == tmp_path
