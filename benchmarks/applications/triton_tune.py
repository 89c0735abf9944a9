"""A matrix product in Triton, of which Triton's autotuner compiles and times several forms.

python -m benchmarks.applications.triton_tune

A phase of the kind `compile` launches it for the first time; only the first one of a process is tuned.
"""

import importlib
import time
from typing import Any

from benchmarks.applications.phases import LoadPhase, serve

torch: Any = importlib.import_module("torch")  # not installed where types are checked
triton: Any = importlib.import_module("triton")
tl: Any = importlib.import_module("triton.language")

SIZE = 2048
# Block sizes of rows, columns and the sum, warps, stages.
FORMS = (
    (32, 32, 32, 4, 2),
    (64, 64, 32, 4, 3),
    (64, 64, 64, 4, 4),
    (128, 64, 32, 4, 4),
    (64, 128, 64, 4, 3),
    (128, 128, 32, 8, 3),
    (128, 128, 64, 8, 3),
    (128, 256, 64, 8, 3),
)


def configs() -> list[Any]:
    """Return the forms as Triton's configurations."""
    return [
        triton.Config({"rows": rows, "columns": columns, "depth": depth}, num_warps=warps, num_stages=stages)
        for rows, columns, depth, warps, stages in FORMS
    ]


@triton.autotune(configs=configs(), key=["size"])  # type: ignore[untyped-decorator]  # Triton is untyped here
@triton.jit  # type: ignore[untyped-decorator]
def product(  # type: ignore[no-untyped-def]  # noqa: ANN201  # Triton reads the annotations
    left,  # noqa: ANN001
    right,  # noqa: ANN001
    out,  # noqa: ANN001
    size,  # noqa: ANN001
    rows: tl.constexpr,
    columns: tl.constexpr,
    depth: tl.constexpr,
):
    """Multiply two square matrices whose size the blocks divide."""
    row = tl.program_id(0) * rows + tl.arange(0, rows)
    column = tl.program_id(1) * columns + tl.arange(0, columns)
    inner = tl.arange(0, depth)
    total = tl.zeros((rows, columns), dtype=tl.float32)
    for at in range(0, size, depth):
        a = tl.load(left + row[:, None] * size + (at + inner)[None, :])
        b = tl.load(right + (at + inner)[:, None] * size + column[None, :])
        total = tl.dot(a, b, total)
    tl.store(out + row[:, None] * size + column[None, :], total.to(tl.bfloat16))


def tune_once(matrices: tuple[Any, Any, Any], phase: LoadPhase) -> None:
    """Launch the product for the first time, and note the form that Triton chose."""

    def grid(form: dict[str, int]) -> tuple[int, int]:
        return SIZE // form["rows"], SIZE // form["columns"]

    begun = time.monotonic_ns()
    product[grid](*matrices, SIZE)
    torch.cuda.synchronize()
    phase.add(begun)
    phase.choices["product"] = str(product.best_config)


def main() -> None:
    """Make the matrices and serve phases."""
    left, right, out = (torch.randn(SIZE, SIZE, device="cuda", dtype=torch.bfloat16) for _ in range(3))
    torch.cuda.synchronize()
    serve({"compile": lambda phase: tune_once((left, right, out), phase)})


if __name__ == "__main__":
    main()
