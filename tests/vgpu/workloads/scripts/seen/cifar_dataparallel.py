import torch
import torchvision
import torchvision.transforms as T
from torch import nn, optim

transform = T.Compose([T.RandomCrop(32, padding=4), T.RandomHorizontalFlip(), T.ToTensor()])
trainset = torchvision.datasets.CIFAR10(root="./data", train=True, transform=transform)
trainloader = torch.utils.data.DataLoader(trainset, batch_size=128, shuffle=True, num_workers=4, pin_memory=True)

net = torchvision.models.resnet18(num_classes=10)
net = net.cuda()
net = torch.nn.DataParallel(net)  # label: data-parallel
criterion = nn.CrossEntropyLoss()
optimizer = optim.SGD(net.parameters(), lr=0.1, momentum=0.9, weight_decay=5e-4)

for epoch in range(200):
    running = torch.zeros((), device="cuda")
    for step, (inputs, targets) in enumerate(trainloader):
        inputs = inputs.cuda()  # label: blocking-copy
        targets = targets.cuda()
        optimizer.zero_grad()
        loss = criterion(net(inputs), targets)
        loss.backward()
        optimizer.step()
        running += loss.detach()
    print("epoch", epoch, "loss", running.item() / len(trainloader))
