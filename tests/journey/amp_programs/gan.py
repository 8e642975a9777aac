"""A generator and a discriminator of points on a circle, with a loss of probabilities."""

import math

import torch
import torch.nn as nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(0)

netG = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2)).to(device)
netD = nn.Sequential(nn.Linear(2, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1), nn.Sigmoid()).to(device)

criterion = nn.BCELoss()
optimizerD = torch.optim.Adam(netD.parameters(), lr=2e-3, betas=(0.5, 0.999))
optimizerG = torch.optim.Adam(netG.parameters(), lr=2e-3, betas=(0.5, 0.999))

generator = torch.Generator().manual_seed(5)
for step in range(60):
    # (1) the discriminator: real ones, then fake ones
    netD.zero_grad()
    angle = torch.rand(64, 1, generator=generator) * 2 * math.pi
    real = torch.cat([angle.cos(), angle.sin()], dim=1).to(device)
    label = torch.full((64,), 1.0, device=device)
    output = netD(real).view(-1)
    errD_real = criterion(output, label)
    errD_real.backward()

    noise = torch.randn(64, 4, generator=generator).to(device)
    fake = netG(noise)
    label.fill_(0.0)
    output = netD(fake.detach()).view(-1)
    errD_fake = criterion(output, label)
    errD_fake.backward()
    errD = errD_real + errD_fake
    optimizerD.step()

    # (2) the generator
    netG.zero_grad()
    label.fill_(1.0)
    errG = criterion(netD(fake).view(-1), label)
    errG.backward()
    optimizerG.step()
    print(f"step {step} loss {errD.item():.6f} loss {errG.item():.6f}")

torch.save(
    {
        "netG": netG.state_dict(),
        "optimizerD": optimizerD.state_dict(),
        "optimizerG": optimizerG.state_dict(),
    },
    "gan.pt",
)
