"""FullyShardedDataParallel with device_id and mixed precision, started by torchrun."""

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
from torch.distributed.fsdp import MixedPrecision

dist.init_process_group("nccl")
rank = dist.get_rank()
torch.cuda.set_device(rank)
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 4))
model = FSDP(
    model, device_id=torch.cuda.current_device(), mixed_precision=MixedPrecision(param_dtype=torch.bfloat16)
)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
torch.manual_seed(rank)
for _ in range(3):
    loss = model(torch.randn(4, 6, device="cuda")).float().square().mean()
    optimizer.zero_grad()
    loss.backward()
    model.clip_grad_norm_(1.0)
    optimizer.step()
print(rank, loss.item())
dist.destroy_process_group()
