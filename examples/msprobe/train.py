"""Two steps of a small network, dumped with msprobe: train.py CONFIG FOLDER [--wrong-kernel]. Needs mindstudio-probe."""

import json
import sys

import torch
from msprobe.pytorch import PrecisionDebugger
from torch import nn
from torch.nn import functional


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 2, 3)
        self.head = nn.Sequential(nn.Linear(8, 4), nn.Linear(4, 3))

    def forward(self, images):
        features = functional.gelu(self.conv(images))
        return self.head(features.flatten(1))


def main(config, folder, is_wrong):
    torch.manual_seed(0)
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    images, labels = torch.randn(2, 1, 4, 4), torch.tensor([0, 2])
    if is_wrong:  # what a kernel does that forgets its last rows
        linear = functional.linear
        functional.linear = lambda x, w, b=None: torch.cat([linear(x, w, b)[:-1], torch.zeros(1, len(w))])
    with open(config) as file:
        chosen = {**json.load(file), "dump_path": folder}
    with open(f"{folder}.json", "w") as file:
        json.dump(chosen, file)
    debugger = PrecisionDebugger(config_path=f"{folder}.json")
    for _ in range(2):
        debugger.start(model=net)
        loss = functional.cross_entropy(net(images), labels)
        loss.backward()
        debugger.stop()
        debugger.step()
        optimizer.step()
        optimizer.zero_grad()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], "--wrong-kernel" in sys.argv)
