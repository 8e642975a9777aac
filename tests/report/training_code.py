"""A small CUDA training program as text: the input of the sample report."""

from __future__ import annotations

PROGRAM = {
    "train.py": '''\
"""Train a classifier on several GPUs."""
import argparse
import os

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel

from data import make_loader
from models.resnet import resnet50
from utils.meters import AverageMeter


def parse_args():
    parser = argparse.ArgumentParser(description="train on cuda devices")
    parser.add_argument("--dist-backend", default="nccl", choices=["nccl", "gloo"])
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--gpu", type=int, default=None, help="which CUDA device to use")
    return parser.parse_args()


def main():
    args = parse_args()
    os.environ.setdefault("CUDA_VISIBLE_DEVICES", "0,1,2,3")
    if not torch.cuda.is_available():
        raise SystemExit("no cuda device")
    ngpus = torch.cuda.device_count()
    dist.init_process_group(backend="nccl", init_method="env://", world_size=ngpus, rank=args.gpu)
    torch.cuda.set_device(args.gpu)
    model = resnet50(num_classes=1000)
    model.cuda(args.gpu)
    model = DistributedDataParallel(model, device_ids=[args.gpu])
    criterion = nn.CrossEntropyLoss().cuda(args.gpu)
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9, weight_decay=1e-4)
    scaler = torch.cuda.amp.GradScaler()
    for epoch in range(90):
        train_one_epoch(model, criterion, optimizer, scaler, make_loader(args), epoch, args)


def train_one_epoch(model, criterion, optimizer, scaler, loader, epoch, args):
    losses = AverageMeter("Loss")
    for images, target in loader:
        images = images.cuda(args.gpu, non_blocking=True)
        target = target.cuda(args.gpu, non_blocking=True)
        with torch.cuda.amp.autocast():
            loss = criterion(model(images), target)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        losses.update(loss.item(), images.size(0))
    torch.cuda.synchronize()


if __name__ == "__main__":
    main()
''',
    "eval.py": """\
import torch

from models.resnet import resnet50


def load(path, gpu):
    checkpoint = torch.load(path, map_location="cuda:{}".format(gpu))
    model = torch.nn.DataParallel(resnet50()).cuda()
    model.load_state_dict({key.replace("module.", ""): value for key, value in checkpoint["state_dict"].items()}, strict=False)
    return model.eval()


@torch.no_grad()
def accuracy(model, loader):
    right = torch.zeros(1, dtype=torch.float64).cuda()
    for images, target in loader:
        output = model(images.to("cuda", non_blocking=True)); right += (output.argmax(1) == target.cuda(non_blocking=True)).sum()  # noqa: E702
    return right.item() / len(loader.dataset)
""",
    "data.py": '''\
import torch
from torch.utils.data import DataLoader


class Prefetcher:
    """Copies the next batch while the current one is computed."""

    def __init__(self, loader, device="cuda"):
        self.loader = iter(loader)
        self.device = device
        self.mean = torch.tensor([0.485 * 255, 0.456 * 255, 0.406 * 255]).cuda().view(1, 3, 1, 1)
        self.std = torch.tensor([0.229 * 255, 0.224 * 255, 0.225 * 255]).cuda().view(1, 3, 1, 1)

    def __next__(self):
        images, target = next(self.loader)
        images = images.to(self.device, non_blocking=True).float().sub_(self.mean).div_(self.std)
        return images, target.cuda(non_blocking=True)


def make_loader(args):
    return Prefetcher(DataLoader(args.dataset, batch_size=256, pin_memory=True))
''',
    "models/resnet.py": """\
import torch
import torch.nn as nn


def resnet50(num_classes=1000, use_cuda_kernel=False):
    layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True)]
    if use_cuda_kernel:
        from flash_attn import flash_attn_func
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, num_classes))
""",
    "models/graphs.py": """\
import torch


def capture(model, batch):
    graph = torch.cuda.CUDAGraph()
    static = torch.empty_like(batch, device="cuda")
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        output = model(static)
    return graph, static, output
""",
    "utils/memory.py": """\
import subprocess
import torch


def report(device="cuda:0"):
    free, total = torch.cuda.mem_get_info(device)
    stats = torch.cuda.memory_stats(device)
    peak = torch.cuda.max_memory_allocated(device)
    print(subprocess.check_output(["sh", "-c", "nvidia-smi --query-gpu=memory.used --format=csv"]))
    torch.cuda.empty_cache()
    return free, total, stats, peak


def limit(fraction):
    torch.cuda.set_per_process_memory_fraction(fraction)
""",
    "utils/meters.py": """\
import torch
import torch.distributed as dist


class AverageMeter:
    def __init__(self, name):
        self.name, self.sum, self.count = name, 0.0, 0

    def all_reduce(self):
        total = torch.tensor([self.sum, self.count], dtype=torch.float64, device="cuda")
        dist.all_reduce(total)
        self.sum, self.count = total.double().tolist()
""",
    "setup.py": """\
from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CUDAExtension

setup(name="ops", ext_modules=[CUDAExtension("ops", ["ops.cpp", "ops_kernel.cu"])], cmdclass={"build_ext": BuildExtension})
""",
    "tools/<b>bench</b> & 基准.py": """\
import time
import torch

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
# a very long line follows
CASES = [("matmul", lambda: torch.randn(4096, 4096, device="cuda") @ torch.randn(4096, 4096, device="cuda")), ("conv", lambda: torch.nn.functional.conv2d(torch.randn(32, 64, 112, 112, device="cuda"), torch.randn(64, 64, 3, 3, device="cuda"), padding=1))]
for name, case in CASES:
    start = time.time(); case(); torch.cuda.synchronize(); print(name, "<script>alert('cuda')</script>", time.time() - start)
""",
}
