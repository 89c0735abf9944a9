import pytorch_lightning as pl
import torch
import torchmetrics
from torch.utils.data import DataLoader

from leaf import LeafData, backbone


class Leaf(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = backbone()
        self.accuracy = torchmetrics.Accuracy("multiclass", num_classes=38)

    def training_step(self, batch, batch_idx):
        x, y = batch
        logits = self.net(x)
        loss = torch.nn.functional.cross_entropy(logits, y)
        self.log("train_loss", loss)
        self.accuracy(logits, y)
        self.log("train_acc", self.accuracy, on_epoch=True)
        return loss

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-4)


class Data(pl.LightningDataModule):
    def train_dataloader(self):
        return DataLoader(LeafData("train"), batch_size=64, shuffle=True, num_workers=8, pin_memory=True)

    def val_dataloader(self):
        return DataLoader(LeafData("val"), batch_size=64, num_workers=8, pin_memory=True)


trainer = pl.Trainer(accelerator="gpu", devices=4, strategy="ddp", max_epochs=10, log_every_n_steps=50)
trainer.fit(Leaf(), Data())
