import torch
from torch.nn import DataParallel
from torch.utils.data import DataLoader

from reid import Market, resnet_ibn

model = DataParallel(resnet_ibn()).cuda()  # label: data-parallel
loader = DataLoader(Market("train"), batch_size=64, num_workers=8, pin_memory=True)
optimizer = torch.optim.Adam(model.parameters(), lr=3.5e-4)
for epoch in range(120):
    for images, pids in loader:
        images, pids = images.cuda(non_blocking=True), pids.cuda(non_blocking=True)
        scores = model(images)
        loss = torch.nn.functional.cross_entropy(scores, pids)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if epoch % 10 == 9:
        torch.save(model.module.state_dict(), f"reid_{epoch}.pth")
