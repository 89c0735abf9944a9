import torch
import wandb
from torch.utils.data import DataLoader

from diffusion import Denoiser, Latents

wandb.init(project="latents")
device = "cuda"
dataloader = DataLoader(Latents("/data/latents"), batch_size=32, num_workers=4, pin_memory=True, prefetch_factor=4)
model = Denoiser().to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
global_step = 0
while global_step < 400_000:
    for latents, text in dataloader:
        latents = latents.to(device, non_blocking=True)
        text = text.to(device, non_blocking=True)
        noise = torch.randn_like(latents)
        t = torch.randint(0, 1000, (latents.shape[0],), device=device)
        loss = torch.nn.functional.mse_loss(model(latents, noise, t, text), noise)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        wandb.log({"loss": loss.item(), "step": global_step})  # label: sync-each-step
        global_step += 1
        if global_step % 10_000 == 0:
            torch.save(model.state_dict(), f"denoiser-{global_step}.pt")
