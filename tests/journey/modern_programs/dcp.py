"""torch.distributed.checkpoint of a sharded model, with one backend for each kind of device."""

import shutil
import tempfile

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import nn
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.fsdp import fully_shard

dist.init_process_group("cpu:gloo,cuda:nccl")
rank = dist.get_rank()
torch.cuda.set_device(rank)
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 4)).cuda()
fully_shard(model)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
torch.manual_seed(rank)


def step():
    loss = model(torch.randn(4, 6, device="cuda")).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


step()
folder = [tempfile.mkdtemp() if rank == 0 else ""]
dist.broadcast_object_list(folder)
names = ("model", "optimizer")
dcp.save(dict(zip(names, get_state_dict(model, optimizer))), checkpoint_id=folder[0])
step()
state = dict(zip(names, get_state_dict(model, optimizer)))
dcp.load(state, checkpoint_id=folder[0])
set_state_dict(model, optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"])
print(rank, step())
dist.barrier()
if rank == 0:
    shutil.rmtree(folder[0])
dist.destroy_process_group()
