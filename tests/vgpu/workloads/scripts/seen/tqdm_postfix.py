import torch
from torch.utils.data import DataLoader
from tqdm import tqdm

from seq2seq import Model, Pairs

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
train_loader = DataLoader(Pairs("train"), batch_size=64, shuffle=True, num_workers=4, pin_memory=True)
model = Model().to(device)
optimizer = torch.optim.Adam(model.parameters())
for epoch in range(20):
    bar = tqdm(train_loader, desc=f"epoch {epoch}")
    for src, tgt in bar:
        src = src.to(device, non_blocking=True)
        tgt = tgt.to(device, non_blocking=True)
        loss = model(src, tgt)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        bar.set_postfix(loss=loss.item())  # label: sync-each-step
