import torch
from torch.utils.data import DataLoader

from points import Clouds, PointNet

model = PointNet().cuda()
loader = DataLoader(Clouds("shapenet"), batch_size=32, num_workers=8, pin_memory=True, shuffle=True)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(250):
    for cloud, category in loader:
        cloud = cloud.cuda(non_blocking=True)
        category = category.cuda(non_blocking=True)
        loss = torch.nn.functional.nll_loss(model(cloud), category)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        torch.cuda.synchronize()  # label: sync-each-step
        torch.cuda.empty_cache()  # label: empty-cache-each-step
    print("done", epoch)
