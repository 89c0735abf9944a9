"""promtool on the rules: it has nothing to say about them, and each alert fires after its time and not before."""

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from cluster import missing
from cluster.programs import prometheus
from tests import certificates
from tests.contract.monitoring import rules

pytestmark = pytest.mark.e2e

SERIES = yaml.safe_load((Path(__file__).parents[1] / "rule_series.yaml").read_text())
MINUTES = {"m": 1, "h": 60}
SETTLED = 90  # minutes after which every window is full
_CARD = 'node="n",gpu_uuid="u",model="M"'
_CONTAINER = f'{_CARD},namespace="a",pod="p",container="c"'
HALF_A_CARD = {
    f"vgpu_card_memory_total_bytes{{{_CARD}}}": "80x2000",
    f"vgpu_card_healthy{{{_CARD}}}": "1x2000",
    f"vgpu_container_memory_limit_bytes{{{_CONTAINER}}}": "40x2000",
    f"vgpu_container_cores_ratio{{{_CONTAINER}}}": "0.3x2000",
    f"vgpu_container_gpu_seconds_total{{{_CONTAINER}}}": "0+15x2000",
}
DEFAULT_PRICE = {'vgpu_extender_card_hour_price{model="default",currency="EUR"}': "3x2000"}
OWN_PRICE = {'vgpu_extender_card_hour_price{model="M",currency="EUR"}': "2x2000"}


@pytest.fixture(scope="module")
def promtool() -> Path:
    try:
        with certificates.of_the_machine():
            return prometheus.PROGRAMS.ensure() / "promtool"
    except missing.Missing as lacking:
        pytest.skip(str(lacking))


def checked(promtool: Path, work: Path, series: dict[str, str], expected: dict[tuple[int, str], float | None]) -> str:
    """Run promtool on series, and on values of expressions by minute; None is no value. Return what is wrong."""
    tests: list[dict[str, Any]] = [
        {
            "interval": "1m",
            "input_series": [{"series": name, "values": values} for name, values in series.items()],
            "promql_expr_test": [
                {
                    "eval_time": f"{minute}m",
                    "expr": expression,
                    "exp_samples": [] if value is None else [{"labels": "{}", "value": value}],
                }
                for (minute, expression), value in expected.items()
            ],
        }
    ]
    document = {"rule_files": list(map(str, rules.SOURCES.values())), "evaluation_interval": "1m", "tests": tests}
    file = work / "tests.yaml"
    file.write_text(yaml.safe_dump(document))
    done = subprocess.run([promtool, "test", "rules", file], capture_output=True, text=True, check=False)
    return done.stdout + done.stderr if done.returncode else ""


def test_promtool_has_nothing_to_say_about_the_rules(promtool: Path) -> None:
    command: list[str | Path] = [promtool, "check", "rules", "--lint=all", "--lint-fatal", *rules.SOURCES.values()]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_each_alert_has_series() -> None:
    assert list(SERIES) == [rule["alert"] for rule in rules.alerts()]


@pytest.mark.parametrize("rule", rules.alerts(), ids=lambda rule: rule["alert"])
def test_an_alert_fires_after_its_time_and_not_before(rule: dict[str, Any], promtool: Path, tmp_path: Path) -> None:
    name, waits = rule["alert"], int(rule["for"][:-1]) * MINUTES[rule["for"][-1]]
    firing = f'count(sum without (reason, watch) (ALERTS{{alertname="{name}",alertstate="firing"}})) > bool 0'
    late = waits + SETTLED
    bad: dict[tuple[int, str], float | None] = {(late, firing): 1}
    if waits:
        bad[waits - 1, firing] = None
    assert checked(promtool, tmp_path, SERIES[name]["bad"], bad) == ""
    assert checked(promtool, tmp_path, SERIES[name]["good"], {(late, firing): None}) == ""


@pytest.mark.parametrize(
    ("prices", "cost"), [({}, None), (DEFAULT_PRICE, 1.5), (OWN_PRICE, 1.0), (DEFAULT_PRICE | OWN_PRICE, 1.0)]
)
def test_hours_and_cost_of_half_a_card(
    prices: dict[str, str], cost: float | None, promtool: Path, tmp_path: Path
) -> None:
    expected = {
        (120, "sum(namespace_model:vgpu_held_cards:sum)"): 0.5,
        (120, "sum(namespace_model:vgpu_card_hours:1h)"): 0.5,
        (120, "sum(namespace_model:vgpu_used_cards:rate5m)"): 0.25,
        (120, "sum(namespace_model:vgpu_gpu_hours:1h)"): 0.25,
        (120, "sum(namespace:vgpu_cost:1h)"): cost,
    }
    assert checked(promtool, tmp_path, HALF_A_CARD | prices, expected) == ""


def test_a_pod_that_was_there_for_a_part_of_the_hour_has_that_part(promtool: Path, tmp_path: Path) -> None:
    """A quarter of an hour, and the five minutes for which Prometheus takes the last sample of an ended series."""
    series = {
        name: f"_x89 {values.replace('2000', '14')}" if "container" in name else values
        for name, values in HALF_A_CARD.items()
    }
    expression = "round(sum(namespace_model:vgpu_card_hours:1h), 0.01)"
    assert checked(promtool, tmp_path, series, {(120, expression): 0.16}) == ""
