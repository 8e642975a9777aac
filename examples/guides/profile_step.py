"""Profiles one training step with the names that the first Ascend PyTorch had."""

import os

import torch
from torch import nn


def train_step(model, optimizer, data, target):
    loss = nn.functional.cross_entropy(model(data), target)
    loss.backward()
    optimizer.zero_grad()
    optimizer.step()


def main():
    torch.npu.set_device("npu:0")
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 30 * 30, 5)).npu()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    data, target = torch.randn(4, 3, 32, 32).npu(), torch.randint(5, (4,)).npu()
    train_step(model, optimizer, data, target)

    with torch.autograd.profiler.profile(use_npu=True, record_shapes=True, profile_memory=True) as prof:
        train_step(model, optimizer, data, target)
    print(prof.key_averages().table(sort_by="self_cpu_time_total", row_limit=5))
    prof.export_chrome_trace("chrome_trace.json")

    os.makedirs("profiling_data", exist_ok=True)
    with torch.npu.profile(profiler_result_path="./profiling_data", use_e2e_profiler=True):
        train_step(model, optimizer, data, target)


if __name__ == "__main__":
    main()
