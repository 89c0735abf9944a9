"""`make run` with cards of real sizes: as many pods run on a card as their percentage says."""

import pytest

from tests.strategies import REAL_CARD_MIB
from tests.vgpu.simulator.process import running
from vgpu.domain import names

PODS = [("H100", 50, 2), ("H200", 25, 4), ("4090", 10, 10), ("T4", 14, 7)]


@pytest.mark.heavy
def test_each_card_of_another_size_takes_as_many_pods_as_their_percentage_says() -> None:
    sizes = ",".join(map(str, REAL_CARD_MIB))
    with running("--pods", "0", "--nodes", "4", "--cards", "1", "--memory-mib", sizes) as run:
        ambiguous = run.create("half", gpu_mem_percentage=50)
        assert ambiguous.status_code == 422
        assert "71885 MiB on NVIDIA H200, 40448 MiB on NVIDIA H100 80GB HBM3, 12282 MiB on" in ambiguous.text
        for model, percent, count in PODS:
            for number in range(count):
                name = f"{model.lower()}-{number}"
                made = run.create(name, {names.USE_GPU_MODEL: model}, gpu_mem_percentage=percent)
                assert made.status_code == 201, made.text
                assert f'\\"{percent}\\" is ' in made.headers["warning"]
        for model, _, count in PODS:
            nodes = {run.until(f"{model.lower()}-{number}", "Running")["spec"]["nodeName"] for number in range(count)}
            assert len(nodes) == 1
