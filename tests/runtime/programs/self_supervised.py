"""Momentum contrast: a queue in buffers, momentum update, all in half precision by hand, gradients accumulated."""
# ruff: noqa -- written as such programs are

import copy

import torch
import torch.nn as nn
from torch.cuda.amp import GradScaler, autocast

torch.backends.cudnn.deterministic = True
torch.cuda.manual_seed_all(0)


class MoCo(nn.Module):
    def __init__(self, dim=8, K=16, m=0.99, T=0.07):
        super().__init__()
        self.K, self.m, self.T = K, m, T
        self.encoder_q = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, dim))
        self.encoder_k = copy.deepcopy(self.encoder_q)
        for param_k in self.encoder_k.parameters():
            param_k.requires_grad = False
        self.register_buffer("queue", nn.functional.normalize(torch.randn(dim, K), dim=0))
        self.register_buffer("queue_ptr", torch.zeros(1, dtype=torch.long))

    @torch.no_grad()
    def momentum_update(self):
        for param_q, param_k in zip(self.encoder_q.parameters(), self.encoder_k.parameters()):
            param_k.data = param_k.data * self.m + param_q.data * (1.0 - self.m)

    @torch.no_grad()
    def enqueue(self, keys):
        ptr = int(self.queue_ptr)
        self.queue[:, ptr : ptr + keys.shape[0]] = keys.T.to(self.queue.dtype)
        self.queue_ptr[0] = (ptr + keys.shape[0]) % self.K

    def forward(self, im_q, im_k):
        q = nn.functional.normalize(self.encoder_q(im_q), dim=1)
        with torch.no_grad():
            self.momentum_update()
            idx_shuffle = torch.randperm(im_k.shape[0]).cuda()
            k = nn.functional.normalize(self.encoder_k(im_k[idx_shuffle]), dim=1)[torch.argsort(idx_shuffle)]
        l_pos = torch.einsum("nc,nc->n", [q.float(), k.float()]).unsqueeze(-1)
        l_neg = torch.einsum("nc,ck->nk", [q.float(), self.queue.clone().detach()])
        logits = torch.cat([l_pos, l_neg], dim=1) / self.T
        labels = torch.zeros(logits.shape[0], dtype=torch.long).cuda()
        self.enqueue(k)
        return logits, labels


model = MoCo().cuda(0)
criterion = nn.CrossEntropyLoss().cuda(0)
optimizer = torch.optim.SGD(model.parameters(), 0.03, momentum=0.9, weight_decay=1e-4)
scaler = GradScaler(init_scale=2.0**10)
losses = []
for i in range(4):
    images = [torch.randn(4, 6), torch.randn(4, 6)]
    images[0] = images[0].cuda(0, non_blocking=True)
    images[1] = images[1].cuda(0, non_blocking=True)
    with autocast():
        output, target = model(im_q=images[0], im_k=images[1])
        loss = criterion(output, target) / 2
    scaler.scale(loss).backward()
    if (i + 1) % 2 == 0:
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
    losses.append(loss.item())
assert model.queue.is_cuda
models = [model]
