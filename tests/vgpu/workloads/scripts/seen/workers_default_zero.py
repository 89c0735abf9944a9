import argparse

import torch
from torch.utils.data import DataLoader

from tacotron import Tacotron, TextMel, collate


def get_args():
    p = argparse.ArgumentParser()
    p.add_argument("--batch-size", type=int, default=32)
    p.add_argument("--num-workers", type=int, default=0)
    p.add_argument("--log-every", type=int, default=50)
    return p.parse_args()


def train(args):
    device = torch.device("cuda:0")
    loader = DataLoader(  # label: no-workers
        TextMel("ljspeech"), batch_size=args.batch_size, collate_fn=collate, num_workers=args.num_workers, pin_memory=True
    )
    model = Tacotron().to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(500):
        for iteration, (text, mel) in enumerate(loader):
            text, mel = text.to(device, non_blocking=True), mel.to(device, non_blocking=True)
            loss = torch.nn.functional.l1_loss(model(text, mel), mel)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            if iteration % args.log_every == 0:
                print(iteration, loss.item())


train(get_args())
