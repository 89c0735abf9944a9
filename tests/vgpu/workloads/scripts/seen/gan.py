import torch
import torchvision
from torch import nn
from torch.autograd import Variable

from gan_models import Discriminator, Generator

cuda = True if torch.cuda.is_available() else False
generator, discriminator = Generator(), Discriminator()
loss_function = nn.BCELoss()
if cuda:
    generator.cuda()
    discriminator.cuda()
    loss_function.cuda()
Tensor = torch.cuda.FloatTensor if cuda else torch.FloatTensor
dataloader = torch.utils.data.DataLoader(  # label: no-workers, no-pinned-memory
    torchvision.datasets.CelebA("celeba", transform=torchvision.transforms.ToTensor()),
    batch_size=128,
    shuffle=True,
)
optimizer_g = torch.optim.Adam(generator.parameters(), lr=2e-4, betas=(0.5, 0.999))
optimizer_d = torch.optim.Adam(discriminator.parameters(), lr=2e-4, betas=(0.5, 0.999))
for epoch in range(100):
    for i, (imgs, _) in enumerate(dataloader):
        valid = Variable(Tensor(imgs.size(0), 1).fill_(1.0), requires_grad=False)
        real = Variable(imgs.type(Tensor))  # label: blocking-copy
        optimizer_g.zero_grad()
        z = torch.randn(imgs.size(0), 100, device="cuda")
        fake = generator(z)
        g_loss = loss_function(discriminator(fake), valid)
        g_loss.backward()
        optimizer_g.step()
        optimizer_d.zero_grad()
        d_loss = loss_function(discriminator(real), valid) + loss_function(discriminator(fake.detach()), 1 - valid)
        d_loss.backward()
        optimizer_d.step()
        done = epoch * len(dataloader) + i
        if done % 400 == 0:
            print(f"[{epoch}] D {d_loss.item():.3f} G {g_loss.item():.3f}")
            torchvision.utils.save_image(fake.data[:25], f"images/{done}.png", nrow=5, normalize=True)
