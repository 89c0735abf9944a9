import os

import torch
from torch.utils.data import DataLoader

from unet import UNet, Slices

NUM_WORKERS = os.cpu_count()
PIN_MEMORY = True
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
LOG_EVERY = 20


def train_fn(loader, model, optimizer, scaler):
    total = 0
    for batch_idx, (data, targets) in enumerate(loader):
        data = data.to(device=DEVICE, non_blocking=True)
        targets = targets.float().unsqueeze(1).to(device=DEVICE, non_blocking=True)
        with torch.autocast("cuda"):
            loss = torch.nn.functional.binary_cross_entropy_with_logits(model(data), targets)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        total = total + loss.detach()
        if (batch_idx + 1) % LOG_EVERY == 0:
            print("loss", float(total) / LOG_EVERY)
            total = 0


def main():
    model = UNet().to(DEVICE)
    loader = DataLoader(Slices(), batch_size=8, num_workers=NUM_WORKERS, pin_memory=PIN_MEMORY, shuffle=True)
    optimizer = torch.optim.Adam(model.parameters())
    scaler = torch.amp.GradScaler("cuda")
    for epoch in range(30):
        train_fn(loader, model, optimizer, scaler)
        torch.save(model.state_dict(), "unet.pth")


main()
