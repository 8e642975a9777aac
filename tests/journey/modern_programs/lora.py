"""Low-rank adapters in bfloat16 round frozen layers."""

import torch
from torch import nn


class LoRA(nn.Module):
    def __init__(self, base, rank=2):
        super().__init__()
        self.base = base.requires_grad_(False)
        place = {"device": base.weight.device, "dtype": base.weight.dtype}
        self.a = nn.Parameter(torch.randn(rank, base.in_features, **place) * 0.1)
        self.b = nn.Parameter(torch.zeros(base.out_features, rank, **place))

    def forward(self, x):
        return self.base(x) + x @ self.a.t() @ self.b.t()


model = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 4)).to("cuda", torch.bfloat16)
for place in (0, 2):
    model[place] = LoRA(model[place])
trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
assert all(parameter.device.type == "cuda" for parameter in trained)
optimizer = torch.optim.AdamW(trained, lr=1e-2)
for _ in range(3):
    loss = model(torch.randn(4, 8, device="cuda", dtype=torch.bfloat16)).float().square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
