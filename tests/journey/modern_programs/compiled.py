"""torch.compile of a model and of a function, with a fused optimizer."""

import torch
from torch import nn

device = torch.device("cuda")
model = torch.compile(
    nn.Sequential(nn.Linear(6, 12), nn.LayerNorm(12), nn.GELU(), nn.Linear(12, 3)).to(device)
)


@torch.compile
def penalty(weight):
    return weight.square().mean() if weight.is_cuda else weight.abs().mean()


optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, fused=True)
for _ in range(4):
    x, y = torch.randn(4, 6, device=device), torch.randint(0, 3, (4,), device=device)
    loss = nn.functional.cross_entropy(model(x), y) + penalty(next(model.parameters()))
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
print(loss.item())
