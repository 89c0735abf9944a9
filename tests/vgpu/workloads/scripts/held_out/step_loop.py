import torch
from torch.utils.data import DataLoader

from recsys import Clicks, TwoTower


def endless(loader):
    while True:
        yield from loader


STEPS = 100_000
device = torch.device("cuda", 0)
batches = endless(DataLoader(Clicks("clicks.parquet"), batch_size=8192, num_workers=0, pin_memory=True))  # label: no-workers
model = TwoTower().to(device)
optimizer = torch.optim.Adagrad(model.parameters(), lr=0.01)
losses = []
for step in range(STEPS):
    user, item, label = next(batches)
    user, item, label = user.to(device, non_blocking=True), item.to(device, non_blocking=True), label.to(device, non_blocking=True)
    loss = torch.nn.functional.binary_cross_entropy_with_logits(model(user, item), label)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.detach().cpu())  # label: sync-each-step
torch.save(model.state_dict(), "two_tower.pt")
