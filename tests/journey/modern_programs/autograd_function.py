"""An autograd.Function with custom_fwd and custom_bwd, checked by gradcheck on the host, used in mixed precision."""

import torch
from torch import nn
from torch.cuda.amp import custom_bwd, custom_fwd


class Swish(torch.autograd.Function):
    @staticmethod
    @custom_fwd
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * torch.sigmoid(x)

    @staticmethod
    @custom_bwd
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        sigmoid = torch.sigmoid(x)
        return gradient * (sigmoid * (1 + x * (1 - sigmoid)))


assert torch.autograd.gradcheck(Swish.apply, torch.randn(3, dtype=torch.double, requires_grad=True))
first, second = nn.Linear(6, 8).cuda(), nn.Linear(8, 3).cuda()
optimizer = torch.optim.SGD([*first.parameters(), *second.parameters()], lr=0.1)
for _ in range(3):
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = second(Swish.apply(first(torch.randn(4, 6).cuda()))).float().square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
