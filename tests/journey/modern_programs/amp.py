"""torch.cuda.amp with a GradScaler, accumulated and clipped gradients; AMP is on unless the device is the CPU."""

import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = nn.Sequential(
    nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 36, 3)
).to(device)
amp = next(model.parameters()).device.type != "cpu"
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
scaler = torch.cuda.amp.GradScaler(enabled=amp)
for step in range(6):
    x, y = torch.randn(2, 3, 8, 8).to(device, non_blocking=True), torch.randint(0, 3, (2,)).to(device)
    with torch.cuda.amp.autocast(enabled=amp):
        loss = nn.functional.cross_entropy(model(x), y) / 2
    scaler.scale(loss).backward()
    if step % 2:
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad(set_to_none=True)
print(loss.item(), scaler.get_scale())
