import torch
from torch.utils.data import DataLoader, Dataset

from camvid import load_pair, names
from segnet import SegNet


class CamVid(Dataset):
    def __init__(self, split):
        self.names = names(split)

    def __len__(self):
        return len(self.names)

    def __getitem__(self, i):
        image, mask = load_pair(self.names[i])
        return torch.from_numpy(image).permute(2, 0, 1).float() / 255, torch.from_numpy(mask).long()


def collate(samples):
    images, masks = [], []
    for image, mask in samples:
        images.append(image)
        masks.append(mask)
    return torch.stack(images), torch.stack(masks)


dev = torch.device("cuda:0")
loader = DataLoader(CamVid("train"), batch_size=4, shuffle=True, num_workers=4, collate_fn=collate)  # label: no-pinned-memory
net = SegNet().to(dev)
optim = torch.optim.Adam(net.parameters())
step = 0
for epoch in range(50):
    for images, masks in loader:
        images = images.to(dev)  # label: blocking-copy
        masks = masks.to(dev)
        loss = torch.nn.functional.cross_entropy(net(images), masks)
        optim.zero_grad()
        loss.backward()
        optim.step()
        step += 1
        if not step % 25:
            print(step, loss.item())
