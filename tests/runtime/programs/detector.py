"""Training as YOLO's programs write it: select_device, AMP by device.type, an EMA of the model, a timer."""
# ruff: noqa -- written as such programs are

import math
import os
import time
from copy import deepcopy

import torch
import torch.nn as nn
from torch.cuda import amp


def select_device(device="", batch_size=None):
    cpu_request = device.lower() == "cpu"
    if device and not cpu_request:
        os.environ["CUDA_VISIBLE_DEVICES"] = device
        assert torch.cuda.is_available(), f"CUDA unavailable, invalid device {device} requested"
    cuda = False if cpu_request else torch.cuda.is_available()
    if cuda:
        c = 1024**2
        ng = torch.cuda.device_count()
        if ng > 1 and batch_size:
            assert batch_size % ng == 0, f"batch-size {batch_size} not multiple of GPU count {ng}"
        x = [torch.cuda.get_device_properties(i) for i in range(ng)]
        s = ""
        for i in range(0, ng):
            s += f"CUDA:{i} ({x[i].name}, {x[i].total_memory / c}MB)\n"
    return torch.device("cuda:0" if cuda else "cpu")


def time_synchronized():
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.time()


class ModelEMA:
    def __init__(self, model, decay=0.9999, updates=0):
        self.ema = deepcopy(model).eval()
        self.updates = updates
        self.decay = lambda x: decay * (1 - math.exp(-x / 2000))
        for p in self.ema.parameters():
            p.requires_grad_(False)

    def update(self, model):
        with torch.no_grad():
            self.updates += 1
            d = self.decay(self.updates)
            msd = model.state_dict()
            for k, v in self.ema.state_dict().items():
                if v.dtype.is_floating_point:
                    v *= d
                    v += (1.0 - d) * msd[k].detach()


device = select_device("", batch_size=4)
cuda = device.type != "cpu"
half = device.type != "cpu"
model = nn.Sequential(
    nn.Conv2d(3, 8, 3, 2, 1, bias=False), nn.BatchNorm2d(8), nn.SiLU(), nn.Conv2d(8, 6, 1)
).to(device)
ema = ModelEMA(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.937, nesterov=True)
scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lr_lambda=lambda x: 1 - x / 3)
scaler = amp.GradScaler(enabled=cuda)
anchors = torch.tensor([[10.0, 13.0]], device=device).view(1, 2, 1, 1)
losses = []
for epoch in range(3):
    imgs = torch.randint(0, 255, (4, 3, 16, 16), dtype=torch.uint8)
    imgs = imgs.to(device, non_blocking=True).float() / 255.0
    targets = torch.rand(4, 6, 8, 8)
    t0 = time_synchronized()
    with amp.autocast(enabled=cuda):
        pred = model(imgs)
        loss = ((pred - targets.to(device)) ** 2).mean()
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=10.0)
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad()
    ema.update(model)
    scheduler.step()
    mem = "%.3gG" % (torch.cuda.memory_reserved() / 1e9 if torch.cuda.is_available() else 0)
    losses.append(loss.item())
if half:
    model.half()
img = torch.zeros((1, 3, 16, 16), device=device)
_ = model(img.half() if half else img) if device.type != "cpu" else None
half_dtype = _.dtype
model.float()
models = [model, ema.ema]
