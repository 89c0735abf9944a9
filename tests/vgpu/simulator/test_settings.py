"""The simulator's settings."""

import socket

import pytest
from pydantic import ValidationError
from pydantic_settings import CliApp

from vgpu.simulator import ports
from vgpu.simulator.settings import SimulatorSettings


def test_only_a_given_port_is_mandatory() -> None:
    assert CliApp.run(SimulatorSettings, []).asked_port is None
    assert CliApp.run(SimulatorSettings, ["--port", "0"]).asked_port == 0
    assert CliApp.run(SimulatorSettings, ["--port", "9870"]).asked_port == 9870


def test_free_ports_are_free_for_the_admin_rest_too() -> None:
    assert CliApp.run(SimulatorSettings, ["--port", "0"]).asked_admin_port == 0
    assert CliApp.run(SimulatorSettings, []).asked_admin_port is None
    assert CliApp.run(SimulatorSettings, ["--port", "9870"]).asked_admin_port is None


@pytest.mark.parametrize(
    "flags",
    [["--nodes", "0"], ["--cards", "x"], ["--port", "70000"], ["--memory-mib", "81008,"], ["--memory-mib", "0"]],
)
def test_invalid_settings_are_refused(flags: list[str]) -> None:
    with pytest.raises(ValidationError):
        CliApp.run(SimulatorSettings, flags)


def test_the_size_of_cards_is_given_in_gib_or_by_node_in_mib() -> None:
    assert CliApp.run(SimulatorSettings, []).card_sizes == (81_920,)
    assert CliApp.run(SimulatorSettings, ["--memory-gib", "24"]).card_sizes == (24_576,)
    assert CliApp.run(SimulatorSettings, ["--memory-mib", "81008,24564"]).card_sizes == (81_008, 24_564)


def test_a_port_in_use_is_refused_if_given_and_avoided_if_default() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        taken = listener.getsockname()[1]
        with pytest.raises(ports.PortTaken, match=str(taken)):
            ports.choose(taken, 9870)
        assert ports.choose(None, taken) not in (taken, 0)
    assert ports.choose(None, taken) == taken
    assert ports.choose(taken, 1) == taken
    assert ports.choose(0, taken) not in (taken, 0)
