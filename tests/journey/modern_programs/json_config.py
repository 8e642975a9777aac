"""A trainer that is told everything by a file beside it, in the manner of DeepSpeed's configurations."""

import json

import torch
from torch import nn

with open("ds_config.json") as file:
    config = json.load(file)
device = torch.device(config["device"])
dtype = torch.bfloat16 if config["bf16"]["enabled"] else torch.float32
model = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3)).to(device)
optimizer = getattr(torch.optim, config["optimizer"]["type"])(
    model.parameters(), **config["optimizer"]["params"]
)
for step in range(6):
    with torch.autocast(device_type=device.type, dtype=dtype, enabled=config["bf16"]["enabled"]):
        loss = model(torch.randn(config["train_micro_batch_size_per_gpu"], 6).to(device)).square().mean()
    (loss / config["gradient_accumulation_steps"]).backward()
    if (step + 1) % config["gradient_accumulation_steps"] == 0:
        nn.utils.clip_grad_norm_(model.parameters(), config["gradient_clipping"])
        optimizer.step()
        optimizer.zero_grad()
print(loss.item())
