"""Streams, events, nvtx and record_stream."""

import torch
from torch import nn

model = nn.Linear(6, 3).cuda()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
copies = torch.cuda.Stream()
start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
for step in range(3):
    start.record()
    torch.cuda.nvtx.range_push(f"step {step}")
    with torch.cuda.stream(copies):
        x = torch.randn(4, 6).pin_memory().to("cuda", non_blocking=True)
    torch.cuda.current_stream().wait_stream(copies)
    x.record_stream(torch.cuda.current_stream())
    loss = model(x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    torch.cuda.nvtx.range_pop()
    end.record()
    end.synchronize()
    assert start.elapsed_time(end) >= 0
torch.cuda.synchronize()
print(loss.item(), torch.cuda.max_memory_allocated() >= 0)
