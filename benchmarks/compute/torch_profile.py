"""What PyTorch's profiler, which is CUPTI, sees of a short training: prints how often it saw each kernel and copy.

python -m benchmarks.compute.torch_profile
"""

import json
from collections import Counter

from benchmarks.compute.torch_train import torch, training

STEPS = 20


def main() -> None:
    """Train, profile, and print JSON."""
    torch.manual_seed(1)
    _, step = training()
    activities = torch.profiler.ProfilerActivity
    step()  # libraries load their kernels
    with torch.profiler.profile(activities=[activities.CPU, activities.CUDA]) as profiler:
        for _ in range(STEPS):
            step()
        torch.cuda.synchronize()
    on_card = [event for event in profiler.events() if event.device_type == torch.autograd.DeviceType.CUDA]
    print(json.dumps({"seen": dict(sorted(Counter(event.name for event in on_card).items()))}))


if __name__ == "__main__":
    main()
