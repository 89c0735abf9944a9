"""The resource screening of the simulated scheduler."""

from typing import Any

from vgpu.simulator import resource_fit


def container(amount: int | str, **more: str) -> dict[str, Any]:
    return {"name": f"c{amount}", "resources": {"limits": {"vgpu.io/slice": amount, "cpu": "500m"}}, **more}


def pod(*apps: int | str, inits: tuple[Any, ...] = (), node: str = "", phase: str = "Pending") -> dict[str, Any]:
    spec = {"containers": [container(n) for n in apps], "initContainers": list(inits), "nodeName": node}
    return {"spec": spec, "status": {"phase": phase}}


def node(**allocatable: str) -> dict[str, Any]:
    return {"spec": {}, "status": {"allocatable": {name.replace("_", "/"): v for name, v in allocatable.items()}}}


def test_app_containers_add_up() -> None:
    assert resource_fit.requested(pod(8, "4")) == {"vgpu.io/slice": 12}


def test_the_larger_of_init_and_app_containers_counts_and_sidecars_count_with_both() -> None:
    sidecar = container(3, restartPolicy="Always")
    assert resource_fit.requested(pod(5, inits=(container(10),))) == {"vgpu.io/slice": 10}
    assert resource_fit.requested(pod(5, inits=(sidecar, container(10)))) == {"vgpu.io/slice": 13}
    assert resource_fit.requested(pod(5, inits=(container(6), sidecar))) == {"vgpu.io/slice": 8}


def test_a_terminal_pod_uses_nothing() -> None:
    pods = [pod(1, node="n"), pod(2, node="n", phase="Running"), pod(4, node="n", phase="Failed"), pod(8, node="m")]
    assert resource_fit.requested_on(pods, "n") == {"vgpu.io/slice": 3}


def test_a_node_is_refused_when_too_little_is_left() -> None:
    wanted = {"vgpu.io/slice": 10}
    full = node(**{"vgpu.io/slice": "18k"})
    assert resource_fit.refusal(full, wanted, {"vgpu.io/slice": 17990}, frozenset()) == ""
    assert resource_fit.refusal(full, wanted, {"vgpu.io/slice": 17991}, frozenset()) == "Insufficient vgpu.io/slice"
    assert resource_fit.refusal(node(), wanted, {}, frozenset()) == "Insufficient vgpu.io/slice"
    assert resource_fit.refusal(node(), wanted, {}, frozenset({"vgpu.io/slice"})) == ""


def test_a_node_is_refused_by_its_marks() -> None:
    closed = {"metadata": {"name": "n"}, "spec": {"unschedulable": True}}
    tolerant = {"spec": {"tolerations": [{"operator": "Exists"}]}}
    assert resource_fit.rule_refusal(closed, {"spec": {}}) == "node(s) were unschedulable"
    assert resource_fit.rule_refusal(closed, tolerant) == ""


def test_equal_reasons_are_counted() -> None:
    refusals = {"a": "CardTooSmall: x", "b": "Insufficient y", "c": "CardTooSmall: x"}
    assert resource_fit.failure_message(refusals) == "0/3 nodes are available: 1 Insufficient y, 2 CardTooSmall: x."
