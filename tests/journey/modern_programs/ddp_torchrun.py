"""DistributedDataParallel by torchrun, gradients accumulated under no_sync, a DistributedSampler."""

import contextlib
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

dist.init_process_group(backend="nccl")
device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
torch.cuda.set_device(device)
torch.manual_seed(0)
data = TensorDataset(torch.randn(32, 6), torch.randint(0, 3, (32,)))
loader = DataLoader(data, 4, sampler=DistributedSampler(data, shuffle=True))
model = DistributedDataParallel(nn.Linear(6, 3).to(device), device_ids=[device.index])
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for number, (x, y) in enumerate(loader):
    last = number % 2 == 1
    with contextlib.nullcontext() if last else model.no_sync():
        loss = nn.functional.cross_entropy(model(x.to(device)), y.to(device)) / 2
        loss.backward()
    if last:
        optimizer.step()
        optimizer.zero_grad()
total = loss.detach().clone()
dist.all_reduce(total)
print(dist.get_rank(), total.item())
dist.destroy_process_group()
