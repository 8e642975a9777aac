"""An image classifier trained with timm in the manner of its own trainer: prefetching loader, mixup, random erasing,
native scaler, weight averaging, schedule in updates, saver of checkpoints, one device or several through torchrun."""

from __future__ import annotations

import argparse
import json
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import timm
import torch
from timm import utils
from timm.data import FastCollateMixup, create_dataset, create_loader, resolve_data_config
from timm.loss import LabelSmoothingCrossEntropy, SoftTargetCrossEntropy
from timm.models import resume_checkpoint
from timm.optim import create_optimizer_v2
from timm.scheduler import create_scheduler_v2
from torch.nn.parallel import DistributedDataParallel

CLASSES = 4
SIZE = 32


def loaders(args: argparse.Namespace, model: torch.nn.Module) -> tuple[Any, Any]:
    config = resolve_data_config({"input_size": (3, SIZE, SIZE)}, model=model)
    common = {
        "input_size": config["input_size"], "batch_size": 8, "mean": config["mean"], "std": config["std"],
        "use_prefetcher": True, "num_workers": args.workers, "distributed": args.distributed,
        "device": torch.device(args.device), "pin_memory": args.device != "cpu",
    }  # fmt: skip
    augmented = {
        "collate_fn": FastCollateMixup(mixup_alpha=0.2, cutmix_alpha=1.0, num_classes=CLASSES),
        "re_prob": 0.3, "re_mode": "pixel", "auto_augment": "rand-m5",
    }  # fmt: skip
    train = create_loader(
        create_dataset("", root=str(args.data / "train")), is_training=True, **common,
        **(augmented if args.augment else {}),
    )  # fmt: skip
    evaluation = create_loader(
        create_dataset("", root=str(args.data / "validation")), is_training=False, **common
    )
    return train, evaluation


def train_one_epoch(epoch: int, state: argparse.Namespace, args: argparse.Namespace) -> list[float]:
    losses = []
    state.model.train()
    updates = epoch * len(state.train_loader) // args.accumulate
    for index, (pictures, labels) in enumerate(state.train_loader):
        assert pictures.device == labels.device == state.device
        need_update = (index + 1) % args.accumulate == 0
        wait = state.model.no_sync if args.distributed and not need_update else nullcontext
        with wait():
            with state.autocast():
                loss = state.train_loss(state.model(pictures), labels)
            step(loss / args.accumulate, need_update, state)
        losses.append(
            (utils.reduce_tensor(loss.detach(), args.world_size) if args.distributed else loss).item()
        )
        if need_update:
            updates += 1
            state.optimizer.zero_grad()
            state.averaged.update(state.model, step=updates)
            state.schedule.step_update(num_updates=updates)
    return losses


def step(loss: torch.Tensor, need_update: bool, state: argparse.Namespace) -> None:
    if state.scaler is not None:
        state.scaler(
            loss, state.optimizer, clip_grad=1.0, parameters=state.model.parameters(), need_update=need_update
        )
        return
    loss.backward()
    if need_update:
        utils.dispatch_clip_grad(state.model.parameters(), value=1.0)
        state.optimizer.step()


@torch.inference_mode()
def validate(model: torch.nn.Module, state: argparse.Namespace, args: argparse.Namespace) -> dict[str, float]:
    losses, right = utils.AverageMeter(), utils.AverageMeter()
    model.eval()
    for pictures, labels in state.eval_loader:
        with state.autocast():
            output = model(pictures)
        loss = torch.nn.functional.cross_entropy(output, labels)
        top1 = utils.accuracy(output, labels, topk=(1,))[0]
        if args.distributed:
            loss, top1 = (utils.reduce_tensor(value, args.world_size) for value in (loss, top1))
        if state.device.type == "cuda":
            torch.cuda.synchronize()
        losses.update(loss.item(), len(labels))
        right.update(top1.item(), len(labels))
    return {"loss": losses.avg, "top1": right.avg}


def prepared(args: argparse.Namespace) -> argparse.Namespace:
    state = argparse.Namespace(device=utils.init_distributed_device(args))
    if state.device.type == "cuda":
        torch.backends.cudnn.benchmark = True
        torch.backends.cuda.matmul.allow_tf32 = True
        assert torch.cuda.current_device() == args.local_rank
    state.device = torch.zeros(0, device=state.device).device  # with its number
    utils.random_seed(42, args.rank)
    model = timm.create_model(
        args.model, num_classes=CLASSES, **({"img_size": SIZE} if "vit" in args.model else {})
    )
    model.to(device=state.device)
    if args.channels_last:
        model.to(memory_format=torch.channels_last)
    state.optimizer = create_optimizer_v2(
        model, opt="adamw", lr=2e-3, weight_decay=0.02, filter_bias_and_bn=True
    )
    dtype = {"float16": torch.float16, "bfloat16": torch.bfloat16}.get(args.amp)
    state.autocast = (
        partial(torch.autocast, device_type=state.device.type, dtype=dtype) if dtype else nullcontext
    )
    state.scaler = utils.NativeScaler(device=state.device.type) if args.amp == "float16" else None
    state.first = 0
    if args.resume:
        state.first = resume_checkpoint(
            model, str(args.folder / "last.pth.tar"), state.optimizer, state.scaler, weights_only=False
        )
    state.averaged = utils.ModelEmaV3(model, decay=0.8, use_warmup=True)
    if args.sync_bn:
        model = timm.layers.convert_sync_batchnorm(model)
    state.model = DistributedDataParallel(model, device_ids=[state.device]) if args.distributed else model
    state.train_loader, state.eval_loader = loaders(args, model)
    state.schedule, _ = create_scheduler_v2(
        state.optimizer, sched="cosine", num_epochs=args.epochs, warmup_epochs=0, step_on_epochs=False,
        updates_per_epoch=len(state.train_loader) // args.accumulate,
    )  # fmt: skip
    state.train_loss = SoftTargetCrossEntropy() if args.augment else LabelSmoothingCrossEntropy(0.1)
    return state


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("data", type=Path)
    parser.add_argument("--model", default="resnet10t")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--amp", choices=("float16", "bfloat16"))
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--accumulate", type=int, default=2)
    parser.add_argument("--augment", action="store_true")
    parser.add_argument("--sync-bn", action="store_true")
    parser.add_argument("--channels-last", action="store_true")
    parser.add_argument("--resume", action="store_true")
    args = parser.parse_args()

    utils.setup_default_logging()
    state = prepared(args)
    saver = None
    if utils.is_primary(args):
        args.folder.mkdir(exist_ok=True)
        saver = utils.CheckpointSaver(
            model=utils.unwrap_model(state.model), optimizer=state.optimizer, args=args, model_ema=state.averaged,
            amp_scaler=state.scaler, checkpoint_dir=str(args.folder), recovery_dir=str(args.folder),
        )  # fmt: skip
    losses, results = [], []
    for epoch in range(state.first, args.epochs):
        if args.distributed:
            state.train_loader.sampler.set_epoch(epoch)
        losses += train_one_epoch(epoch, state, args)
        if args.distributed:
            utils.distribute_bn(state.model, args.world_size, reduce=True)
        results.append(validate(state.model, state, args))
        averaged = validate(state.averaged, state, args)
        state.schedule.step(epoch + 1, results[-1]["top1"])
        if saver is not None:
            saver.save_checkpoint(epoch, metric=results[-1]["top1"])
    report = {
        "device": str(state.device),
        "parameters": sorted({str(parameter.device) for parameter in state.model.parameters()}),
        "processes": args.world_size,
        "first": state.first,
        "losses": losses,
        "results": results,
        "averaged": averaged,
        "peak": torch.cuda.max_memory_allocated() if state.device.type == "cuda" else 0,
    }
    if utils.is_primary(args):
        print(json.dumps(report))


if __name__ == "__main__":
    main()
