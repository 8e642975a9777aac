"""A whole training step captured as a CUDA graph and replayed."""

import torch
from torch import nn

model = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, y = torch.randn(4, 6, device="cuda"), torch.randint(0, 3, (4,), device="cuda")


def step():
    optimizer.zero_grad(set_to_none=True)
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    return loss


side = torch.cuda.Stream()
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    for _ in range(3):
        step()
torch.cuda.current_stream().wait_stream(side)

graph = torch.cuda.CUDAGraph()
optimizer.zero_grad(set_to_none=True)
with torch.cuda.graph(graph):
    loss = step()
for _ in range(3):
    x.copy_(torch.randn(4, 6))
    graph.replay()
# what was replayed decides how the eager step after it goes on
x.copy_(torch.randn(4, 6))
step()
print(loss.item())
