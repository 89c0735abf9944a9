"""Changes to an instance of a graph: from another graph, or of one kernel."""

import time

import pytest

from simgpu.session import ProbeSession

UPDATE_FAILED, INVALID_VALUE = 910, 1
TOPOLOGY_CHANGED, NODE_TYPE_CHANGED, NOT_SUPPORTED = 2, 3, 6
LONG_US = 200_000


@pytest.fixture
def kernels(session: ProbeSession) -> tuple[int, int]:
    """A short and a long kernel."""
    return session("launches.kernel(1)"), session(f"launches.kernel({LONG_US})")


def graph_of(session: ProbeSession, *kernels: int) -> int:
    graph = session("graphs.create()")
    for kernel in kernels:
        assert session(f"graphs.kernel({graph}, {kernel})") == 0
    return int(graph)


def instance_of(session: ProbeSession, graph: int) -> int:
    result, instance = session(f"graphs.instantiate({graph})")
    assert result == 0
    return int(instance)


def seconds(session: ProbeSession, instance: int) -> float:
    began = time.monotonic()
    assert session(f"[graphs.launch({instance}), cuda.cuCtxSynchronize()]") == [0, 0]
    return time.monotonic() - began


def test_an_update_takes_the_kernels_of_the_other_graph(session: ProbeSession, kernels: tuple[int, int]) -> None:
    short, long = kernels
    instance = instance_of(session, graph_of(session, short, short))
    assert session(f"graphs.update({instance}, {graph_of(session, short, long)})") == [0, 0]
    assert seconds(session, instance) > 0.2


def test_an_update_by_another_form_is_refused_and_changes_nothing(
    session: ProbeSession, kernels: tuple[int, int]
) -> None:
    short, long = kernels
    instance = instance_of(session, graph_of(session, short, short))
    for other in (graph_of(session, long), graph_of(session, long, long, long)):
        assert session(f"graphs.update({instance}, {other})") == [UPDATE_FAILED, TOPOLOGY_CHANGED]
    other = graph_of(session, long)
    session(f"host_functions.node({other}, 'none')")
    assert session(f"graphs.update({instance}, {other})") == [UPDATE_FAILED, NODE_TYPE_CHANGED]
    session(f"graphs.alloc({other}, 1000)")
    assert session(f"graphs.update({instance}, {other})") == [UPDATE_FAILED, NOT_SUPPORTED]
    assert seconds(session, instance) < 0.1


def test_one_kernel_changes_in_the_graph_or_in_the_instance(session: ProbeSession, kernels: tuple[int, int]) -> None:
    short, long = kernels
    graph = graph_of(session, short)
    instance = instance_of(session, graph)
    node = session(f"graphs.nodes_of({graph})[0]")
    assert session(f"graphs.set_kernel({node}, {long})") == 0
    assert seconds(session, instance) < 0.1
    assert session(f"graphs.set_kernel({node}, {long}, {instance})") == 0
    assert seconds(session, instance) > 0.2


def test_a_node_of_another_graph_names_no_kernel(session: ProbeSession, kernels: tuple[int, int]) -> None:
    instance = instance_of(session, graph_of(session, kernels[0]))
    foreign = session(f"graphs.nodes_of({graph_of(session, kernels[0])})[0]")
    assert session(f"graphs.set_kernel({foreign}, {kernels[0]}, {instance})") == INVALID_VALUE
