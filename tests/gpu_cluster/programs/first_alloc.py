"""first_alloc.py: when each step up to the first cuMemAlloc is done, in seconds since 1970."""

import ctypes
import json
import time

steps = {"process": time.time()}
driver = ctypes.CDLL("libcuda.so.1")
steps["library"] = time.time()


def done(step: str, result: int) -> None:
    assert result == 0, f"{step}: {result}"
    steps[step] = time.time()


card, context, pointer = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_uint64()
done("cuInit", driver.cuInit(0))
done("device", driver.cuDeviceGet(ctypes.byref(card), 0))
done("context", driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), card))
done("current", driver.cuCtxSetCurrent(context))
done("cuMemAlloc", driver.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(1 << 20)))
print(json.dumps(steps), flush=True)
