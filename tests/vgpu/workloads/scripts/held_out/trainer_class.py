import torch
from torch.utils.data import DataLoader


class Trainer:
    def __init__(self, model, train_set, valid_set, config):
        self.device = torch.device("cuda")
        self.model = model.to(self.device)
        self.config = config
        self.train_loader = DataLoader(train_set, batch_size=config.batch, num_workers=config.workers, pin_memory=True)
        self.valid_loader = DataLoader(valid_set, batch_size=config.batch, num_workers=config.workers, pin_memory=True)
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=config.lr)

    def train_epoch(self):
        self.model.train()
        for step, batch in enumerate(self.train_loader):
            batch = {key: value.to(self.device) for key, value in batch.items()}  # label: blocking-copy
            loss = self.model(**batch).loss
            loss.backward()
            self.optimizer.step()
            self.optimizer.zero_grad()
            if step % self.config.log_interval == 0:
                print(step, loss.item())

    @torch.no_grad()
    def evaluate(self):
        self.model.eval()
        total = torch.zeros((), device=self.device)
        for batch in self.valid_loader:
            batch = {key: value.to(self.device, non_blocking=True) for key, value in batch.items()}
            total += self.model(**batch).loss
        return total.item() / len(self.valid_loader)

    def fit(self):
        for epoch in range(self.config.epochs):
            self.train_epoch()
            print(epoch, self.evaluate())
            torch.save(self.model.state_dict(), f"{epoch}.pt")
