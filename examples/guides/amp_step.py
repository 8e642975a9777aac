"""Trains three layers with torch.cuda.amp; one line moves it to Ascend without any other change."""

import torch
from torch import nn

try:
    from torch_npu.contrib import transfer_to_npu  # noqa: F401
except ImportError:
    print("no torch_npu: CUDA's names mean CUDA")


def main():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 8)).cuda()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.001)
    scaler = torch.cuda.amp.GradScaler(enabled=True)
    for step in range(3):
        data, target = torch.randn(32, 64, device="cuda"), torch.randn(32, 8, device="cuda")
        with torch.autocast(device_type="cuda", dtype=torch.float16):
            output = net(data)
            loss = nn.functional.mse_loss(output.float(), target)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
        print(f"step {step}: loss {loss.item():.4f} on {output.device}, {output.dtype}")


if __name__ == "__main__":
    main()
