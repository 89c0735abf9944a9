import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

features = torch.load("features.pt").cuda()
targets = torch.load("targets.pt").cuda()
loader = DataLoader(TensorDataset(features, targets), batch_size=4096, shuffle=True)
model = nn.Sequential(nn.Linear(768, 2048), nn.ReLU(), nn.Linear(2048, 100)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(100):
    correct = torch.zeros((), device="cuda")
    for x, y in loader:
        out = model(x)
        loss = nn.functional.cross_entropy(out, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        correct += (out.argmax(1) == y).sum()
    print(epoch, (correct / len(targets)).item())
