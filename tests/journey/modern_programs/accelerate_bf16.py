"""accelerate: bfloat16 and accumulated gradients."""

import torch
from accelerate import Accelerator
from torch import nn

accelerator = Accelerator(mixed_precision="bf16", gradient_accumulation_steps=2)
model = nn.Sequential(nn.Linear(6, 12), nn.GELU(), nn.Linear(12, 3))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
data = torch.utils.data.TensorDataset(torch.randn(32, 6), torch.randint(0, 3, (32,)))
model, optimizer, loader = accelerator.prepare(
    model, optimizer, torch.utils.data.DataLoader(data, 4, shuffle=True)
)
for x, y in loader:
    with accelerator.accumulate(model):
        loss = nn.functional.cross_entropy(model(x), y)
        accelerator.backward(loss)
        accelerator.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
print(loss.item(), accelerator.device)
