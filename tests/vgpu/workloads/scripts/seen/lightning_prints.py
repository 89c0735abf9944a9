import lightning as L
import torch
from torch.utils.data import DataLoader

from encoder import Encoder, Frames


class Module(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.encoder = Encoder()
        self.losses = []

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = torch.nn.functional.mse_loss(self.encoder(x), y)
        self.losses.append(loss.item())  # label: sync-each-step
        print("step", batch_idx)  # label: print-each-step
        return loss

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-3)


loader = DataLoader(Frames("frames"), batch_size=64, num_workers=6, pin_memory=True)
L.Trainer(accelerator="gpu", devices=1, max_epochs=20).fit(Module(), loader)
