"""Fine-tune a small text classifier with mixed precision, and say how much memory it took."""

import argparse
import os
import subprocess
from dataclasses import fields

os.environ.setdefault("CUDA_VISIBLE_DEVICES", "0")
os.environ.setdefault("CUDA_DEVICE_MAX_CONNECTIONS", "1")
os.environ["NCCL_DEBUG"] = "WARN"

import torch
import torch.distributed as dist
from config import Config
from model import Classifier
from torch.cuda.amp import GradScaler, autocast
from torch.profiler import ProfilerActivity, profile

try:
    from apex.optimizers import FusedAdam
except ImportError:
    from torch.optim import AdamW as FusedAdam


def parse_args():
    parser = argparse.ArgumentParser()
    for field in fields(Config):
        kind = (lambda text: text == "true") if field.type in (bool, "bool") else type(field.default)
        parser.add_argument(f"--{field.name.replace('_', '-')}", type=kind, default=field.default)
    return Config(**vars(parser.parse_args()))


def batches(config):
    """Sequences in which one token tells the class."""
    generator = torch.Generator().manual_seed(0)
    for _ in range(config.steps):
        labels = torch.randint(config.classes, (config.batch_size,), generator=generator)
        shape = (config.batch_size, config.length)
        tokens = torch.randint(config.classes, config.vocabulary, shape, generator=generator)
        tokens[:, ::4] = labels[:, None]
        yield tokens, labels


def gpu_status():
    """One line per GPU from the driver's own tool."""
    try:
        query = ["nvidia-smi", "--query-gpu=name,memory.used", "--format=csv,noheader"]
        return subprocess.run(query, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "no GPU driver"


def train(config):
    torch.manual_seed(0)
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        dist.init_process_group(config.backend)
    if not torch.cuda.is_available():
        config.device, config.amp = "cpu", False
    device = torch.device(config.device)
    model = Classifier(config).to(device)
    optimizer = FusedAdam(model.parameters(), lr=config.lr)
    scaler = GradScaler(enabled=config.amp)
    for step, (tokens, labels) in enumerate(batches(config)):
        tokens, labels = tokens.to(device), labels.to(device)
        with autocast(enabled=config.amp):
            loss = torch.nn.functional.cross_entropy(model(tokens), labels)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        if step % 5 == 0:
            print(f"step {step:3d}  loss {loss.item():.6f}")
    if device.type == "cuda":
        torch.cuda.synchronize()
        print(f"memory: {torch.cuda.max_memory_allocated() / 2**20:.0f} MiB")
        print(f"cards with compute capability {torch.cuda.get_device_capability()}")
        torch.cuda.nvtx.mark("done")


def main():
    config = parse_args()
    print(f"torch {torch.__version__}, CUDA {torch.version.cuda}; {gpu_status()}")
    if config.profile:
        activities = [ProfilerActivity.CPU, ProfilerActivity.CUDA]
        with profile(activities=activities) as profiler:
            train(config)
        print(profiler.key_averages().table(sort_by="cuda_time_total", row_limit=5))
    else:
        train(config)


if __name__ == "__main__":
    main()
