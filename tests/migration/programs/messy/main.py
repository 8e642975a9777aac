"""Trains a small segmentation network; reads its configuration from where it is started."""

import argparse
import json

import torch
from torch import nn

from nets.unet import UNet

parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=0.1)
args = parser.parse_args()

config = json.load(open("configs/base.json"))
device = torch.device(config["device"])
torch.manual_seed(config["seed"])
model = UNet(config["width"]).cuda()
criterion = nn.CrossEntropyLoss().cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=args.lr)

for step in range(config["steps"]):
    images = torch.randn(2, 3, 16, 16).to(device)
    labels = torch.randint(0, 4, (2, 16, 16), device="cuda:0")
    loss = criterion(model(images), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step} loss {loss.item():.4f}")
    with open("losses.json", "w") as log:
        json.dump({"step": step, "loss": loss.item()}, log)
