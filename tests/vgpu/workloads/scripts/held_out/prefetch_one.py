import h5py
import torch
from torch.utils.data import DataLoader, Dataset

from climate import Forecast


class Weather(Dataset):
    def __init__(self, path):
        self.path = path
        with h5py.File(path) as file:
            self.length = len(file["fields"]) - 1

    def __len__(self):
        return self.length

    def __getitem__(self, i):
        with h5py.File(self.path) as file:
            return torch.from_numpy(file["fields"][i]), torch.from_numpy(file["fields"][i + 1])


loader = DataLoader(Weather("era5.h5"), batch_size=4, num_workers=2, prefetch_factor=1, pin_memory=True)  # label: no-prefetch
model = Forecast().to("cuda")
model = torch.compile(model)
optimizer = torch.optim.AdamW(model.parameters())
for epoch in range(10):
    for now, after in loader:
        now, after = now.to("cuda", non_blocking=True), after.to("cuda", non_blocking=True)
        loss = (model(now) - after).abs().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
