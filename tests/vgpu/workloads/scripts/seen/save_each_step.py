import torch
from torch.utils.data import DataLoader

from data import Reviews
from net import Classifier

loader = DataLoader(Reviews("train"), batch_size=32, num_workers=2, pin_memory=True)
model = Classifier().cuda()
opt = torch.optim.AdamW(model.parameters(), lr=3e-5)
step = 0
for epoch in range(3):
    for tokens, labels in loader:
        tokens = tokens.cuda(non_blocking=True)
        labels = labels.cuda(non_blocking=True)
        loss = torch.nn.functional.cross_entropy(model(tokens), labels)
        opt.zero_grad()
        loss.backward()
        opt.step()
        step += 1
        torch.save({"model": model.state_dict(), "opt": opt.state_dict(), "step": step}, "last.pt")  # label: save-each-step
