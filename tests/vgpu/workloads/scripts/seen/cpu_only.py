import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

x = torch.linspace(-3, 3, 4096).unsqueeze(1)
loader = DataLoader(TensorDataset(x, torch.sin(x)), batch_size=128, shuffle=True)
model = nn.Sequential(nn.Linear(1, 64), nn.Tanh(), nn.Linear(64, 1))
optimizer = torch.optim.LBFGS(model.parameters())
for epoch in range(20):
    for inputs, wanted in loader:

        def closure():
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(inputs), wanted)
            loss.backward()
            return loss

        optimizer.step(closure)
