import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader
from torchvision import datasets, transforms

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 32, 3)
        self.fc = nn.Linear(32 * 13 * 13, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        return self.fc(torch.flatten(x, 1))


def train(model, loader, optimizer, epoch):
    model.train()
    for batch_idx, (data, target) in enumerate(loader):
        data, target = data.to(device), target.to(device)  # label: blocking-copy
        optimizer.zero_grad()
        loss = F.cross_entropy(model(data), target)
        loss.backward()
        optimizer.step()
        print(epoch, batch_idx, loss.item())  # label: sync-each-step, print-each-step


def main():
    dataset = datasets.MNIST("data", train=True, download=True, transform=transforms.ToTensor())
    loader = DataLoader(dataset, batch_size=64, shuffle=True)  # label: no-workers, no-pinned-memory
    model = Net().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for epoch in range(10):
        train(model, loader, optimizer, epoch)
    torch.save(model.state_dict(), "mnist.pt")


if __name__ == "__main__":
    main()
