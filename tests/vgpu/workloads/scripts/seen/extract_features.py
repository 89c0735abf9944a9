import numpy as np
import torch
import torchvision
from torch.utils.data import DataLoader
from torchvision import transforms


@torch.no_grad()
def main():
    model = torchvision.models.vit_b_16(weights="DEFAULT").eval().cuda()
    dataset = torchvision.datasets.ImageFolder("images", transforms.Compose([transforms.Resize(224), transforms.ToTensor()]))
    loader = DataLoader(dataset, batch_size=256, num_workers=16, pin_memory=True)
    features = []
    for images, _ in loader:
        out = model(images.cuda(non_blocking=True))
        features.append(out.cpu().numpy())  # label: sync-each-step
    np.save("features.npy", np.concatenate(features))


main()
