"""Programs of many frameworks, each run by `frameworks` with and without a limit: `framework_programs NAME [PAST]`.

Each computes something with fixed seeds, then, where PAST is given, asks for PAST bytes, which are more than the
limit, and goes on. The last line of its output is JSON: the values, and the error that stopped it.
"""

import ctypes
import importlib
import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

Case = Callable[[int], dict[str, Any]]  # bytes to ask for, 0 for none

STEPS = 10
PER_THREAD = 2  # CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM
OUT_OF_MEMORY = 2


def stop(take: Callable[[], object], go_on: Callable[[], float], past: int) -> dict[str, Any]:
    """The kind of error that an allocation above the limit raises, and a result computed after it."""
    if not past:
        return {"stopped": None, "after": go_on()}
    try:
        taken = take()
    except Exception as error:  # noqa: BLE001 - which one it is, is the question
        return {"stopped": type(error).__name__, "after": go_on()}
    return {"stopped": f"nothing: {type(taken).__name__}", "after": go_on()}


def load_torch() -> Any:
    torch: Any = importlib.import_module("torch")
    torch.manual_seed(7)
    torch.use_deterministic_algorithms(mode=True)
    return torch


def torch_stop(torch: Any, past: int) -> dict[str, Any]:
    return stop(
        lambda: torch.empty(past, dtype=torch.uint8, device="cuda"),
        lambda: float(torch.arange(1000.0, device="cuda").sum()),
        past,
    )


def make_model(torch: Any) -> Any:
    nn = torch.nn
    layers = nn.Conv2d(3, 16, 3), nn.ReLU(), nn.Flatten(), nn.Linear(16 * 30 * 30, 64), nn.ReLU(), nn.Linear(64, 10)
    return nn.Sequential(*layers).cuda()


def train(torch: Any, model: Any) -> list[float]:
    """The losses of a few steps."""
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    losses = []
    for _ in range(STEPS):
        loss = model(torch.randn(64, 3, 32, 32, device="cuda")).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(float(loss))
    return losses


def torch_eager(past: int) -> dict[str, Any]:
    torch = load_torch()
    return {"values": train(torch, make_model(torch)), **torch_stop(torch, past)}


def torch_graph(past: int) -> dict[str, Any]:
    """A captured forward pass, replayed."""
    torch = load_torch()
    model, given = make_model(torch), torch.zeros(64, 3, 32, 32, device="cuda")
    side = torch.cuda.Stream()
    with torch.cuda.stream(side), torch.no_grad():
        model(given)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph), torch.no_grad():
        answer = model(given)
    values = []
    for _ in range(STEPS):
        given.copy_(torch.randn(64, 3, 32, 32, device="cuda"))
        graph.replay()
        values.append(float(answer.sum()))
    return {"values": values, **torch_stop(torch, past)}


def torch_compile(past: int) -> dict[str, Any]:
    torch = load_torch()

    def formula(x: Any, y: Any) -> Any:
        return (torch.sin(x) * y + torch.cos(y)).sum(dim=1)

    compiled = torch.compile(formula)
    x, y = torch.randn(2, 512, 512, device="cuda")
    return {"values": compiled(x, y).tolist(), **torch_stop(torch, past)}


def torch_loader(past: int) -> dict[str, Any]:
    """Workers that make batches, pinned on the way to the card."""
    torch = load_torch()
    data = torch.utils.data
    numbers = data.TensorDataset(torch.arange(4096, dtype=torch.float32).reshape(-1, 4))
    loader = data.DataLoader(numbers, batch_size=64, num_workers=2, pin_memory=True)
    sums = [float(batch.cuda(non_blocking=True).sum()) for (batch,) in loader]
    return {"values": sums, **torch_stop(torch, past)}


def torch_ddp(past: int) -> dict[str, Any]:
    """Two ranks on one card."""
    return train_ranks("gloo", 1, past)


def torch_nccl(past: int) -> dict[str, Any]:
    """Two ranks on two cards."""
    return train_ranks("nccl", 2, past)


def train_ranks(backend: str, cards: int, past: int) -> dict[str, Any]:
    torch = load_torch()
    if torch.cuda.device_count() < cards:
        raise SystemExit(f"needs {cards} cards")
    with tempfile.TemporaryDirectory() as folder, socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        server.close()
        torch.multiprocessing.spawn(train_rank, (backend, cards, port, folder, past), nprocs=2)
        ranks = [json.loads((Path(folder) / str(rank)).read_text()) for rank in range(2)]
    values = [value for rank in ranks for value in rank["values"]]
    stopped = {rank["stopped"] for rank in ranks}
    return {"values": values, "stopped": stopped.pop() if len(stopped) == 1 else sorted(map(str, stopped)), "after": 0}


def train_rank(rank: int, backend: str, cards: int, port: int, folder: str, past: int) -> None:
    torch = load_torch()
    distributed = torch.distributed
    torch.cuda.set_device(rank % cards)
    distributed.init_process_group(backend, init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=2)
    model = torch.nn.parallel.DistributedDataParallel(make_model(torch), device_ids=[rank % cards])
    found = {"values": train(torch, model), **torch_stop(torch, past)}
    (Path(folder) / str(rank)).write_text(json.dumps(found))
    distributed.barrier()
    distributed.destroy_process_group()


def use_cupy(past: int) -> dict[str, Any]:
    cupy: Any = importlib.import_module("cupy")
    numbers = cupy.random.RandomState(7).standard_normal((512, 512))
    values = [float((numbers @ numbers).sum()), float(cupy.sin(numbers).sum()), *cupy.sort(numbers[0]).tolist()]
    return {"values": values, **stop(lambda: cupy.empty(past, cupy.uint8), lambda: float(cupy.ones(1000).sum()), past)}


def use_numba(past: int) -> dict[str, Any]:
    numpy: Any = importlib.import_module("numpy")
    if not hasattr(numpy, "row_stack"):
        numpy.row_stack = numpy.vstack  # gone from NumPy, and looked for by Numba
    numba: Any = importlib.import_module("numba.cuda")

    def triple(out: Any, given: Any) -> None:
        at = numba.grid(1)
        if at < given.size:
            out[at] = 3 * given[at] + at

    kernel = numba.jit(triple)

    def compute() -> Any:
        out = numba.device_array(1000, numpy.float64)
        kernel[8, 128](out, numba.to_device(numpy.arange(1000.0)))
        return out.copy_to_host()

    taken = lambda: numba.device_array(past, numpy.uint8)  # noqa: E731
    return {"values": compute().tolist(), **stop(taken, lambda: float(compute().sum()), past)}


def use_jax(past: int) -> dict[str, Any]:
    jax: Any = importlib.import_module("jax")
    numbers = jax.random.normal(jax.random.key(7), (512, 512))
    values = [float((numbers @ numbers).sum()), float(jax.numpy.sin(numbers).sum())]
    taken = lambda: jax.numpy.zeros(past, jax.numpy.uint8).block_until_ready()  # noqa: E731
    return {"values": values, **stop(taken, lambda: float(jax.numpy.ones(1000).sum()), past)}


class DriverError(Exception):
    """A CUresult that is not success."""


class OutOfMemory(DriverError):
    """CUDA_ERROR_OUT_OF_MEMORY."""


class Driver:
    """The driver's functions as a runtime linked for per-thread default streams finds them."""

    def __init__(self) -> None:
        self._cuda = ctypes.CDLL("libcuda.so.1")
        context = ctypes.c_void_p()
        self("cuInit", 0)
        self("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
        self("cuCtxSetCurrent", context)

    def __call__(self, name: str, *arguments: object) -> None:
        place, status = ctypes.c_void_p(), ctypes.c_int()
        flags = ctypes.c_uint64(PER_THREAD)
        if self._cuda.cuGetProcAddress_v2(name.encode(), ctypes.byref(place), 12000, flags, ctypes.byref(status)):
            raise DriverError(name)
        result = ctypes.CFUNCTYPE(ctypes.c_int)(place.value or 0)(*arguments)
        if result:
            raise OutOfMemory(name) if result == OUT_OF_MEMORY else DriverError(f"{name}: {result}")

    def take(self, size: int) -> ctypes.c_uint64:
        pointer = ctypes.c_uint64()
        self("cuMemAllocAsync", ctypes.byref(pointer), ctypes.c_size_t(size), None)
        return pointer

    def round_trip(self) -> float:
        """Writes a thousand sevens to the card and reads their sum."""
        bytes_back, size = (ctypes.c_ubyte * 1000)(), ctypes.c_size_t(1000)
        pointer = self.take(1000)
        self("cuMemsetD8Async", pointer, ctypes.c_ubyte(7), size, None)
        self("cuMemcpyDtoHAsync", bytes_back, pointer, size, None)
        self("cuStreamSynchronize", None)
        self("cuMemFreeAsync", pointer, None)
        return float(sum(bytes_back))


def use_driver(past: int) -> dict[str, Any]:
    driver = Driver()
    return {"values": [driver.round_trip()], **stop(lambda: driver.take(past), driver.round_trip, past)}


def use_runtime(past: int) -> dict[str, Any]:
    """A program that nvcc builds with `--default-stream per-thread`."""
    source = Path(__file__).with_name("per_thread.cu")
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "program"
        without = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
        build = ["nvcc", "--default-stream", "per-thread", "-o", str(program), str(source)]
        subprocess.run(build, env=without, check=True, capture_output=True)
        done = subprocess.run([str(program), str(past)], check=True, capture_output=True, text=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


CASES: dict[str, Case] = {
    "torch": torch_eager,
    "graph": torch_graph,
    "compile": torch_compile,
    "loader": torch_loader,
    "ddp": torch_ddp,
    "nccl": torch_nccl,
    "cupy": use_cupy,
    "numba": use_numba,
    "jax": use_jax,
    "driver": use_driver,
    "runtime": use_runtime,
}


if __name__ == "__main__":
    answer = CASES[sys.argv[1]](int(sys.argv[2]) if len(sys.argv) > 2 else 0)
    sys.stdout.write(f"\n{json.dumps(answer)}\n")
