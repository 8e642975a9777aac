"""A repository as people have them: one GPU, a config read by a relative path, a notebook, SLURM, Docker, an old script."""

from __future__ import annotations

import json
from pathlib import Path

_TRAIN = """\
import argparse
import json
import os
import time

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader

from seg.data import Shapes
from seg.model import UNet
from seg.utils import AverageMeter, read_yaml, save_checkpoint

os.environ["CUDA_VISIBLE_DEVICES"] = "0"


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--config", default="configs/base.yaml")
    parser.add_argument("--augment", default="configs/augment.json")
    parser.add_argument("--epochs", type=int, default=None)
    parser.add_argument("--out", default="runs")
    return parser.parse_args()


def dice(logits, target):
    p = torch.sigmoid(logits)
    return 1 - (2 * (p * target).sum() + 1) / (p.sum() + target.sum() + 1)


def main():
    args = parse()
    cfg = read_yaml(args.config)
    with open(args.augment) as file:
        augment = json.load(file)
    torch.manual_seed(cfg["seed"])
    torch.cuda.manual_seed_all(cfg["seed"])
    torch.backends.cudnn.benchmark = True
    print("training on", torch.cuda.get_device_name(0))

    dataset = Shapes(cfg["images"], cfg["size"], noise=augment["noise"])
    loader = DataLoader(dataset, batch_size=cfg["batch_size"], shuffle=True, num_workers=0, pin_memory=True)
    model = UNet(width=cfg["width"]).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=cfg["lr"])

    for epoch in range(args.epochs or cfg["epochs"]):
        model.train()
        losses = AverageMeter()
        start = time.time()
        for step, (image, mask) in enumerate(loader):
            image = image.cuda(non_blocking=True)
            mask = mask.cuda(non_blocking=True)
            logits = model(image)
            loss = F.binary_cross_entropy_with_logits(logits, mask) + dice(logits, mask)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.update(loss.item(), image.size(0))
        torch.cuda.synchronize()
        print("epoch %d loss %.6f (%.1f s)" % (epoch, losses.average, time.time() - start))
        print("memory %.1f MB" % (torch.cuda.max_memory_allocated() / 1e6))
        os.makedirs(args.out, exist_ok=True)
        save_checkpoint(os.path.join(args.out, "last.pth"), model, optimizer, epoch)


if __name__ == "__main__":
    main()
"""
_MODEL = """\
import torch
import torch.nn as nn


def block(i, o):
    return nn.Sequential(nn.Conv2d(i, o, 3, padding=1), nn.BatchNorm2d(o), nn.ReLU(inplace=True))


class UNet(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.down1 = block(1, width)
        self.down2 = block(width, width * 2)
        self.up = nn.ConvTranspose2d(width * 2, width, 2, stride=2)
        self.head = nn.Sequential(block(width * 2, width), nn.Conv2d(width, 1, 1))

    def forward(self, x):
        a = self.down1(x)
        b = self.down2(nn.functional.max_pool2d(a, 2))
        return self.head(torch.cat([a, self.up(b)], 1))
"""
_DATA = '''\
import torch
from torch.utils.data import Dataset


class Shapes(Dataset):
    """Squares on noise."""

    def __init__(self, count, size, noise):
        generator = torch.Generator().manual_seed(7)
        corners = torch.randint(0, size // 2, (count, 2), generator=generator)
        self.masks = torch.zeros(count, 1, size, size)
        for mask, (y, x) in zip(self.masks, corners.tolist()):
            mask[0, y : y + size // 2, x : x + size // 2] = 1
        self.images = self.masks + noise * torch.randn(self.masks.shape, generator=generator)

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        return self.images[index], self.masks[index]
'''
_UTILS = """\
import torch


class AverageMeter:
    def __init__(self):
        self.total, self.count = 0.0, 0

    def update(self, value, n=1):
        self.total += value * n
        self.count += n

    @property
    def average(self):
        return self.total / max(self.count, 1)


def read_yaml(path):
    values = {}
    with open(path) as file:
        for line in file:
            line = line.split("#")[0].strip()
            if line:
                key, value = line.split(":", 1)
                value = value.strip()
                try:
                    values[key] = int(value)
                except ValueError:
                    try:
                        values[key] = float(value)
                    except ValueError:
                        values[key] = value
    return values


def save_checkpoint(path, model, optimizer, epoch):
    torch.save({"state_dict": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}, path)


def load_checkpoint(path, model):
    checkpoint = torch.load(path, map_location="cuda:0")
    model.load_state_dict(checkpoint["state_dict"])
    return checkpoint["epoch"]
"""
_EVALUATE = """\
import sys

import torch

from seg.data import Shapes
from seg.model import UNet
from seg.utils import load_checkpoint, read_yaml

cfg = read_yaml("configs/base.yaml")
device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
model = UNet(cfg["width"]).to(device).eval()
load_checkpoint(sys.argv[1], model)
data = Shapes(8, cfg["size"], 0.1)
with torch.no_grad(), torch.cuda.amp.autocast():
    predicted = model(data.images.to(device)) > 0
print("IoU", ((predicted & (data.masks.to(device) > 0)).sum() / (predicted | (data.masks.to(device) > 0)).sum()).item())
"""
_OLD = """\
# converts masks of 2014, run with python2
import sys
import torch
for name in sys.argv[1:]:
    print "converting", name
    try:
        data = torch.load(name).cuda()
    except IOError, e:
        print >>sys.stderr, e
"""
_NOTEBOOK = {
    "cells": [
        {"cell_type": "markdown", "metadata": {}, "source": ["# Look at predictions\n"]},
        {
            "cell_type": "code",
            "execution_count": None,
            "metadata": {},
            "outputs": [],
            "source": [
                "!nvidia-smi\n",
                "import torch\n",
                "x = torch.zeros(2, device='cuda')\n",
                "print(x.is_cuda)\n",
            ],
        },
    ],
    "metadata": {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}},
    "nbformat": 4,
    "nbformat_minor": 5,
}
FILES = {
    "train.py": _TRAIN,
    "evaluate.py": _EVALUATE,
    "seg/__init__.py": "",
    "seg/model.py": _MODEL,
    "seg/data.py": _DATA,
    "seg/utils.py": _UTILS,
    "configs/base.yaml": "# the thesis\nseed: 3\nimages: 64\nsize: 16\nwidth: 4\nbatch_size: 8\nlr: 0.003\nepochs: 2\ndevice: cuda:0\n",
    "configs/augment.json": '{"noise": 0.1, "device": "cuda"}\n',
    "scripts/job.slurm": "#!/bin/bash\n#SBATCH --gres=gpu:1\nmodule load cuda/11.8\nexport CUDA_VISIBLE_DEVICES=0\npython train.py --config configs/base.yaml\n",
    "scripts/py2_masks.py": _OLD,
    "Dockerfile": "FROM nvidia/cuda:11.8.0-cudnn8-runtime-ubuntu22.04\nCOPY . /work\nRUN pip install -r requirements.txt\n",
    "requirements.txt": "--extra-index-url https://download.pytorch.org/whl/cu118\ntorch==2.1.0+cu118\ntorchvision==0.16.0+cu118\nnvidia-ml-py\n",
    "look.ipynb": json.dumps(_NOTEBOOK, indent=1) + "\n",
    "README.md": "# Segmentation for my thesis\n\nNeeds a GPU. `python train.py`\n",
}  # fmt: skip


def write_messy_repository(folder: Path) -> Path:
    """The repository, in a folder that is made."""
    for name, text in FILES.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return folder
