import logging

import torch
from torch.utils.data import DataLoader

from wav import Clips, Wav

log = logging.getLogger(__name__)
device = torch.device("cuda")


def fit(epochs: int) -> None:
    loader = DataLoader(Clips("clips"), batch_size=24, shuffle=True, num_workers=6, pin_memory=True)
    model = Wav().to(device)
    optimizer = torch.optim.Adam(model.parameters())
    for epoch in range(epochs):
        for index, clip in enumerate(loader):
            clip = clip.to(device, non_blocking=True)
            loss = model(clip)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            log.info(f"epoch {epoch} batch {index} loss {loss}")  # label: print-each-step, sync-each-step


fit(100)
