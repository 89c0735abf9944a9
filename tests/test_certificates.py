"""Tests trust no certificate of the machine, except where programs download."""

import os

import pytest

from tests import certificates


def test_the_machines_certificates_are_trusted_in_the_block_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VGPU_TESTS_SSL_CERT_FILE", "/etc/machine.pem")
    monkeypatch.setenv("VGPU_TESTS_SSL_CERT_DIR", "")
    assert os.environ["SSL_CERT_FILE"].endswith("nobody.pem")
    with certificates.of_the_machine():
        assert os.environ["SSL_CERT_FILE"] == "/etc/machine.pem"
        assert "SSL_CERT_DIR" not in os.environ
    assert os.environ["SSL_CERT_FILE"].endswith("nobody.pem")
    assert os.environ["SSL_CERT_DIR"] == os.devnull


def test_the_end_of_a_nested_block_leaves_the_outer_one_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    """A test module makes a cluster of its own while the cluster that all modules share goes on running."""
    monkeypatch.setenv("VGPU_TESTS_SSL_CERT_FILE", "/etc/machine.pem")
    with certificates.of_the_machine():
        with certificates.of_the_machine():
            pass
        assert os.environ["SSL_CERT_FILE"] == "/etc/machine.pem"
    assert os.environ["SSL_CERT_FILE"].endswith("nobody.pem")


def test_a_worker_process_keeps_the_settings_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker process inherits pytest's environment, in which SSL_CERT_FILE is replaced already."""
    monkeypatch.setenv("VGPU_TESTS_SSL_CERT_FILE", "/etc/machine.pem")
    certificates.trust_nobody()
    assert os.environ["VGPU_TESTS_SSL_CERT_FILE"] == "/etc/machine.pem"
