import math

import numpy as np
import torch

from model import GPT, GPTConfig

block_size, batch_size, device = 256, 64, "cuda"
data = np.memmap("train.bin", dtype=np.uint16, mode="r")
model = GPT(GPTConfig(block_size=block_size)).to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=6e-4, fused=True)


def get_batch():
    ix = torch.randint(len(data) - block_size, (batch_size,))
    x = torch.stack([torch.from_numpy(data[i : i + block_size].astype(np.int64)) for i in ix])
    y = torch.stack([torch.from_numpy(data[i + 1 : i + 1 + block_size].astype(np.int64)) for i in ix])
    return x.pin_memory().to(device, non_blocking=True), y.pin_memory().to(device, non_blocking=True)


def get_lr(it):
    return 6e-4 * min(1.0, it / 2000) * 0.5 * (1.0 + math.cos(math.pi * it / 600000))


x, y = get_batch()
for it in range(600000):
    for group in optimizer.param_groups:
        group["lr"] = get_lr(it)
    logits, loss = model(x, y)
    x, y = get_batch()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    if it % 100 == 0:
        print(f"iter {it}: loss {loss.item():.4f}")
    if it > 0 and it % 5000 == 0:
        torch.save({"model": model.state_dict(), "iter": it}, "ckpt.pt")
