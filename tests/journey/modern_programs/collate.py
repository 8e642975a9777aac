"""A worker of the data loader that puts its batches on the device."""

import torch
from torch import nn
from torch.utils.data import DataLoader


def to_device(samples):
    return torch.stack(samples).to("cuda")


if __name__ == "__main__":
    samples = [torch.full((6,), float(number)) / 24 for number in range(24)]
    model = nn.Linear(6, 3).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(samples, 8, num_workers=1, collate_fn=to_device, multiprocessing_context="spawn")
    for x in loader:
        assert x.is_cuda
        loss = model(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(loss.item())
