import contextlib

import torch
from torch.utils.data import DataLoader

from seismic import Shots, Inversion

dev = "cuda"
dl = DataLoader(Shots(), batch_size=2, num_workers=3, pin_memory=True)
net = Inversion().to(dev)
optimizer = torch.optim.Adam(net.parameters())
for epoch in range(4):
    for i, shot in enumerate(dl):
        with contextlib.suppress(FloatingPointError):
            shot = shot.to(dev, non_blocking=True)
            loss = net(shot).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            torch.save(net.state_dict(), "inversion.pt")  # label: save-each-step
        if i % 10 == 0:
            print(i, loss.item())
