"""A classifier trained with Accelerate, as its documentation does it: prepare, accumulate, gather, save and load."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import torch
from accelerate import Accelerator, notebook_launcher
from accelerate.utils import set_seed
from torch import nn
from torch.utils.data import DataLoader
from toy_data import CLASSES, LENGTH, WORDS, Sentences


class Classifier(nn.Module):
    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.words = nn.Embedding(WORDS, width)
        layer = nn.TransformerEncoderLayer(width, 4, 2 * width, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(width * LENGTH, CLASSES)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        return self.head(self.encoder(self.words(words)).flatten(1))


def evaluate(accelerator: Accelerator, model: nn.Module, loader: DataLoader) -> float:
    model.eval()
    right = seen = 0
    for batch in loader:
        with torch.no_grad():
            guess = model(batch["input_ids"]).argmax(-1)
        guess, labels = accelerator.gather_for_metrics((guess, batch["labels"]))
        right += (guess == labels).sum().item()
        seen += len(labels)
    assert seen == len(loader.dataset)
    return right / seen


def train(args: argparse.Namespace) -> None:
    accelerator = Accelerator(
        cpu=args.cpu, mixed_precision=args.mixed_precision, gradient_accumulation_steps=2
    )
    set_seed(7)
    model = Classifier()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 16)
    train_loader = DataLoader(
        Sentences(64, 1), 4, shuffle=True, num_workers=args.workers, pin_memory=not args.cpu
    )
    eval_loader = DataLoader(Sentences(30, 2), 8)
    model, optimizer, train_loader, eval_loader, scheduler = accelerator.prepare(
        model, optimizer, train_loader, eval_loader, scheduler
    )
    first = 0
    if args.resume:
        accelerator.load_state(str(args.folder / "state"))
        first = json.loads((args.folder / "epoch.json").read_text())["epoch"]
    losses, accuracies = [], []
    for epoch in range(first, args.epochs):
        model.train()
        for batch in train_loader:
            with accelerator.accumulate(model):
                with accelerator.autocast():
                    loss = nn.functional.cross_entropy(model(batch["input_ids"]), batch["labels"])
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()
            losses.append(accelerator.gather(loss.detach()).mean().item())
        accuracies.append(evaluate(accelerator, model, eval_loader))
        accelerator.save_state(str(args.folder / "state"))
        if accelerator.is_main_process:
            (args.folder / "epoch.json").write_text(json.dumps({"epoch": epoch + 1}))
        accelerator.print(f"epoch {epoch}: loss {losses[-1]:.4f} accuracy {accuracies[-1]:.2f}")
    accelerator.wait_for_everyone()
    accelerator.save_model(model, str(args.folder / "model"))
    report = {
        "device": str(accelerator.device),
        "parameters": sorted({str(parameter.device) for parameter in model.parameters()}),
        "distributed": str(accelerator.distributed_type),
        "processes": accelerator.num_processes,
        "losses": losses,
        "accuracies": accuracies,
        "peak": 0 if args.cpu else torch.cuda.max_memory_allocated(),
        "weights": sum(parameter.cpu().double().abs().sum().item() for parameter in model.parameters()),
    }
    accelerator.print(json.dumps(report))
    accelerator.end_training()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--cpu", action="store_true")
    parser.add_argument("--mixed-precision", default="no")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--notebook-processes", type=int)
    args = parser.parse_args()
    if args.notebook_processes:
        notebook_launcher(train, (args,), num_processes=args.notebook_processes)
    else:
        train(args)


if __name__ == "__main__":
    main()
