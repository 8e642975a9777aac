"""A GAN that learns to draw points on a ring of Gaussians; a script without functions, for one GPU."""

import argparse
import os
import random

import torch
import torch.nn as nn
import torch.optim as optim
import torch.utils.data
from rings import Ring

parser = argparse.ArgumentParser()
parser.add_argument("--batchSize", type=int, default=64, help="input batch size")
parser.add_argument("--nz", type=int, default=8, help="size of the latent vector")
parser.add_argument("--niter", type=int, default=20, help="number of epochs to train for")
parser.add_argument("--lr", type=float, default=0.003)
parser.add_argument("--samples", type=int, default=1024)
parser.add_argument("--cuda", action="store_true", default=True)
parser.add_argument("--netG", default="", help="path to netG (to continue training)")
parser.add_argument("--outf", default="out", help="folder for checkpoints")
opt = parser.parse_args()
print(opt)

try:
    os.makedirs(opt.outf)
except OSError:
    pass

manualSeed = 999
random.seed(manualSeed)
torch.manual_seed(manualSeed)

dataset = Ring(opt.samples)
dataloader = torch.utils.data.DataLoader(dataset, opt.batchSize, True, num_workers=0)
device = torch.device("cuda:0" if opt.cuda else "cpu")


def weights_init(m):
    if isinstance(m, nn.Linear):
        nn.init.normal_(m.weight, 0.0, 0.2)
        nn.init.zeros_(m.bias)


class Generator(nn.Module):
    def __init__(self, nz):
        super().__init__()
        self.main = nn.Sequential(
            nn.Linear(nz, 32),
            nn.BatchNorm1d(32),
            nn.ReLU(True),
            nn.Linear(32, 32),
            nn.ReLU(True),
            nn.Linear(32, 2),
        )

    def forward(self, input):
        return self.main(input)


class Discriminator(nn.Module):
    def __init__(self):
        super().__init__()
        self.main = nn.Sequential(
            nn.Linear(2, 32),
            nn.LeakyReLU(0.2),
            nn.Linear(32, 32),
            nn.BatchNorm1d(32),
            nn.LeakyReLU(0.2),
            nn.Linear(32, 1),
        )

    def forward(self, input):
        return self.main(input).view(-1)


netG = Generator(opt.nz).to(device)
netG.apply(weights_init)
if opt.netG != "":
    netG.load_state_dict(torch.load(opt.netG))
print(netG)

netD = Discriminator().to(device)
netD.apply(weights_init)
print(netD)

criterion = nn.BCEWithLogitsLoss()
fixed_noise = torch.randn(opt.batchSize, opt.nz, device=device)

optimizerD = optim.Adam(netD.parameters(), lr=opt.lr, betas=(0.5, 0.999))
optimizerG = optim.Adam(netG.parameters(), lr=opt.lr, betas=(0.5, 0.999))

for it in range(opt.niter):
    for i, data in enumerate(dataloader, 0):
        # (1) real and fake points through D, one backward pass for both
        netD.zero_grad()
        real = data.to(device)
        output = netD(real)
        errD_real = criterion(output, torch.ones_like(output))
        noise = torch.randn(real.size(0), opt.nz, device=device)
        fake = netG(noise)
        output_fake = netD(fake.detach())
        errD_fake = criterion(output_fake, torch.zeros_like(output_fake))
        errD = errD_real + errD_fake
        errD.backward()
        optimizerD.step()

        # (2) G is to make D call its points real
        netG.zero_grad()
        output = netD(fake)
        errG = criterion(output, torch.ones_like(output))
        errG.backward()
        optimizerG.step()
        if i % 4 == 0:
            print(
                "[%d/%d][%d/%d] Loss_D: %.4f Loss_G: %.4f"
                % (it, opt.niter, i, len(dataloader), errD.item(), errG.item())
            )

    with torch.no_grad():
        points = netG(fixed_noise)
        print("mean radius %.3f" % points.norm(dim=1).mean().item())

    # do checkpointing
    torch.save(netG.state_dict(), "%s/netG.pth" % opt.outf)
    torch.save(netD.state_dict(), "%s/netD.pth" % opt.outf)
