"""A trainer migrated by hand in the way of the Ascend guide: torch.npu in tree, apex.amp, a static loss scale."""

from __future__ import annotations

import argparse
import os

import torch
import torch.nn as nn
import torch.npu
from apex import amp

from tests.sim.shims.nets import batches, small_net

CALCULATE_DEVICE = "npu:1"


def parse_args(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--amp", default=False, action="store_true")
    parser.add_argument("--loss-scale", default=1024.0, type=float)
    parser.add_argument("--opt-level", default="O2")
    parser.add_argument("--epochs", default=2, type=int)
    parser.add_argument("--resume", default="")
    parser.add_argument("--checkpoint", default="")
    return parser.parse_args(arguments)


def main(arguments: list[str]) -> tuple[list[float], torch.dtype]:
    """Train, and answer each epoch's loss and what the weights are in."""
    args = parse_args(arguments)
    model = small_net().to(CALCULATE_DEVICE)
    criterion = nn.CrossEntropyLoss().to(CALCULATE_DEVICE)
    optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9, weight_decay=1e-4)
    if args.amp:
        model, optimizer = amp.initialize(
            model, optimizer, opt_level=args.opt_level, loss_scale=args.loss_scale
        )
    start = 0
    if os.path.isfile(args.resume):
        checkpoint = torch.load(args.resume, map_location=CALCULATE_DEVICE)
        start = checkpoint["epoch"]
        model.load_state_dict(checkpoint["state_dict"])
        optimizer.load_state_dict(checkpoint["optimizer"])
        if args.amp:
            amp.load_state_dict(checkpoint["amp"])
    losses = []
    for epoch in range(start, args.epochs):
        losses.append(train(model, criterion, optimizer, args))
        if args.checkpoint:
            saved = {
                "epoch": epoch + 1,
                "state_dict": model.state_dict(),
                "optimizer": optimizer.state_dict(),
                "amp": amp.state_dict(),
            }
            torch.save(saved, args.checkpoint)
    return losses, next(model.parameters()).dtype


def train(
    model: nn.Module, criterion: nn.Module, optimizer: torch.optim.Optimizer, args: argparse.Namespace
) -> float:
    """One epoch; labels are cast to int32 as the guide does, which the card's loss takes."""
    model.train()
    total = 0.0
    for images, target in batches(4):
        if "npu" in CALCULATE_DEVICE:
            target = target.to(torch.int32)
        images = images.to(CALCULATE_DEVICE, non_blocking=True)
        target = target.to(CALCULATE_DEVICE, non_blocking=True)
        loss = criterion(model(images), target)
        optimizer.zero_grad()
        if args.amp:
            with amp.scale_loss(loss, optimizer) as scaled_loss:
                scaled_loss.backward()
        else:
            loss.backward()
        optimizer.step()
        total += loss.item()
    return total
