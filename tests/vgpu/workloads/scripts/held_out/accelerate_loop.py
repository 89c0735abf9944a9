import torch
from accelerate import Accelerator
from torch.utils.data import DataLoader

from summariser import Articles, Summariser

accelerator = Accelerator(mixed_precision="bf16")
loader = DataLoader(Articles("train"), batch_size=8, shuffle=True, num_workers=4, pin_memory=True)
model = Summariser()
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-5)
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
for epoch in range(3):
    for step, batch in enumerate(loader):
        with accelerator.accumulate(model):
            loss = model(**batch).loss
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
        if step % 100 == 99:
            accelerator.print(f"{step}: {loss.item():.3f}")
    accelerator.save_state(f"epoch-{epoch}")
