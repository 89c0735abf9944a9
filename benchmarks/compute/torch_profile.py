"""What PyTorch's profiler, which is CUPTI, sees of a short training: prints how often it saw each kernel and copy.

python -m benchmarks.compute.torch_profile
"""

import importlib
import json
from collections import Counter
from typing import Any

torch: Any = importlib.import_module("torch")  # not installed where types are checked
nn = torch.nn

STEPS = 20
WIDTH = 1024


def main() -> None:
    """Train, profile, and print JSON."""
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH)).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    data = torch.randn(512, WIDTH, device="cuda")
    activities = torch.profiler.ProfilerActivity
    _step(model, optimizer, data)  # libraries load their kernels
    with torch.profiler.profile(activities=[activities.CPU, activities.CUDA]) as profiler:
        for _ in range(STEPS):
            _step(model, optimizer, data)
        torch.cuda.synchronize()
    on_card = [each for each in profiler.events() if each.device_type == torch.autograd.DeviceType.CUDA]
    print(json.dumps({"seen": dict(sorted(Counter(each.name for each in on_card).items()))}))


def _step(model: Any, optimizer: Any, data: Any) -> None:
    optimizer.zero_grad()
    (model(data) - data).square().mean().backward()
    optimizer.step()


if __name__ == "__main__":
    main()
