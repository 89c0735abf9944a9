"""A short deterministic training in PyTorch: prints a digest of the weights, and the time of a step.

python -m benchmarks.compute.torch_train
"""

import hashlib
import importlib
import json
import time
from collections.abc import Callable
from typing import Any

torch: Any = importlib.import_module("torch")  # not installed where types are checked
nn = torch.nn

STEPS = 150
WIDTH = 1024


def main() -> None:
    """Train and print JSON."""
    torch.manual_seed(1)
    torch.use_deterministic_algorithms(mode=True)
    model, step = training()
    for number in range(2 * STEPS):
        if number == STEPS:
            torch.cuda.synchronize()
            begun = time.monotonic()
        loss = step()
    torch.cuda.synchronize()
    each = (time.monotonic() - begun) / STEPS
    weights = b"".join(parameter.detach().cpu().numpy().tobytes() for parameter in model.parameters())
    print(json.dumps({"digest": hashlib.sha256(weights).hexdigest(), "loss": loss.item(), "step_ms": each * 1000}))


def training() -> tuple[Any, Callable[[], Any]]:
    """Return a model on the card, and a function that trains it by one step and returns the loss."""
    model = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH)).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    data = torch.randn(512, WIDTH, device="cuda")

    def step() -> Any:
        optimizer.zero_grad()
        loss = (model(data) - data).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    return model, step


if __name__ == "__main__":
    main()
