import argparse
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler
from torchvision import datasets, models, transforms

parser = argparse.ArgumentParser()
parser.add_argument("data")
parser.add_argument("-j", "--workers", default=8, type=int)
parser.add_argument("--print-freq", default=100, type=int)


def main():
    args = parser.parse_args()
    dist.init_process_group("nccl")
    rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(rank)
    model = DistributedDataParallel(models.resnet50().cuda(rank), device_ids=[rank])
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    criterion = torch.nn.CrossEntropyLoss().cuda(rank)
    train_set = datasets.ImageFolder(args.data, transforms.Compose([transforms.RandomResizedCrop(224), transforms.ToTensor()]))
    sampler = DistributedSampler(train_set)
    loader = DataLoader(
        train_set, batch_size=256, sampler=sampler, num_workers=args.workers, pin_memory=True, persistent_workers=True
    )
    for epoch in range(90):
        sampler.set_epoch(epoch)
        for i, (images, target) in enumerate(loader):
            images = images.cuda(rank, non_blocking=True)
            target = target.cuda(rank, non_blocking=True)
            loss = criterion(model(images), target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if i % args.print_freq == 0:
                print(f"epoch {epoch} step {i} loss {loss.item():.3f}")
        if rank == 0:
            torch.save(model.module.state_dict(), f"checkpoint-{epoch}.pt")


main()
