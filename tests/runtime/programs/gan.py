"""A GAN with two optimizers and the alias of typed tensors that such programs have."""
# ruff: noqa -- written as such programs are

import numpy as np
import torch
import torch.nn as nn
from torch.autograd import Variable

cuda = True if torch.cuda.is_available() else False
Tensor = torch.cuda.FloatTensor if cuda else torch.FloatTensor

generator = nn.Sequential(
    nn.Linear(8, 16), nn.BatchNorm1d(16, 0.8), nn.LeakyReLU(0.2, inplace=True), nn.Linear(16, 4)
)
discriminator = nn.Sequential(
    nn.Linear(4, 16), nn.LeakyReLU(0.2, inplace=True), nn.Linear(16, 1), nn.Sigmoid()
)
adversarial_loss = torch.nn.BCELoss()

if cuda:
    generator.cuda()
    discriminator.cuda()
    adversarial_loss.cuda()

optimizer_G = torch.optim.Adam(generator.parameters(), lr=2e-4, betas=(0.5, 0.999))
optimizer_D = torch.optim.Adam(discriminator.parameters(), lr=2e-4, betas=(0.5, 0.999))
losses = []
for i in range(3):
    imgs = torch.randn(6, 4)
    valid = Variable(Tensor(imgs.size(0), 1).fill_(1.0), requires_grad=False)
    fake = Variable(Tensor(imgs.size(0), 1).fill_(0.0), requires_grad=False)
    real_imgs = Variable(imgs.type(Tensor))

    optimizer_G.zero_grad()
    z = Variable(Tensor(np.random.normal(0, 1, (imgs.shape[0], 8))))
    gen_imgs = generator(z)
    g_loss = adversarial_loss(discriminator(gen_imgs), valid)
    g_loss.backward()
    optimizer_G.step()

    optimizer_D.zero_grad()
    real_loss = adversarial_loss(discriminator(real_imgs), valid)
    fake_loss = adversarial_loss(discriminator(gen_imgs.detach()), fake)
    d_loss = (real_loss + fake_loss) / 2
    d_loss.backward()
    optimizer_D.step()
    losses.append(d_loss.item() + g_loss.item())

# gradient penalty of WGAN-GP
alpha = Tensor(np.random.random((6, 1)))
interpolates = (alpha * real_imgs + ((1 - alpha) * gen_imgs.detach())).requires_grad_(True)
d_interpolates = discriminator(interpolates)
gradients = torch.autograd.grad(
    outputs=d_interpolates,
    inputs=interpolates,
    grad_outputs=Variable(Tensor(6, 1).fill_(1.0), requires_grad=False),
    create_graph=True,
    retain_graph=True,
    only_inputs=True,
)[0]
losses.append((((gradients.norm(2, dim=1) - 1) ** 2).mean()).item())
models = [generator, discriminator]
