"""A PyTorch program for test_load_paths.py: allocates up to a limit of 4 GiB and past it, and prints results as JSON.

With the argument `preload` it limits itself first.
"""

import importlib
import json
import sys
from typing import Any

if "preload" in sys.argv:
    import limiter

    limiter.preload(memory="4GiB", cores=30)

torch: Any = importlib.import_module("torch")  # in no environment of ours

GIB = 1 << 30


def take(size: int) -> Any:
    """A tensor of that many bytes, or the name of the error."""
    try:
        return torch.empty(size, dtype=torch.uint8, device="cuda")
    except Exception as error:  # noqa: BLE001 - which one it is, is the question
        return type(error).__name__


def main() -> None:
    seen: dict[str, object] = {"info": torch.cuda.mem_get_info()}
    seen["properties"] = torch.cuda.get_device_properties(0).total_memory
    first, second = take(2 * GIB), take(GIB)
    seen["within"] = [type(first).__name__, type(second).__name__]
    seen["free after 3 GiB"] = torch.cuda.mem_get_info()[0]
    seen["past"] = take(2 * GIB)
    del first, second
    torch.cuda.empty_cache()
    third = take(3 * GIB)
    third.fill_(7)
    seen["goes on"] = int(third[123456789])
    small = torch.randn(256, 256, device="cuda")
    seen["computes"] = bool(torch.allclose(small @ torch.eye(256, device="cuda"), small))
    sys.stdout.write(json.dumps(seen, default=str))


if __name__ == "__main__":
    main()
