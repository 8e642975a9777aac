"""A classifier trained with Lightning: fit, validate, test, predict, checkpoints, one device or several."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import lightning as L
import torch
from lightning.pytorch.callbacks import DeviceStatsMonitor, LearningRateMonitor, ModelCheckpoint
from lightning.pytorch.loggers import CSVLogger
from lightning.pytorch.profilers import PyTorchProfiler
from torch import nn
from torch.utils.data import DataLoader
from torchmetrics.classification import MulticlassAccuracy
from toy_data import CLASSES, LENGTH, WORDS, Sentences


class Classifier(L.LightningModule):
    def __init__(self, width: int = 32, lr: float = 3e-3) -> None:
        super().__init__()
        self.save_hyperparameters()
        self.body = nn.Sequential(
            nn.Embedding(WORDS, width), nn.Flatten(), nn.Linear(width * LENGTH, width), nn.LayerNorm(width), nn.GELU()
        )  # fmt: skip
        self.head = nn.Linear(width, CLASSES)
        self.accuracy = MulticlassAccuracy(CLASSES, average="micro")
        self.losses: list[torch.Tensor] = []
        self.places: dict[str, object] = {}

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        return self.head(self.body(words))

    def training_step(self, batch: dict[str, torch.Tensor], index: int) -> torch.Tensor:
        loss = nn.functional.cross_entropy(self(batch["input_ids"]), batch["labels"])
        self.log("train_loss", loss, prog_bar=True, sync_dist=True)
        self.losses.append(loss.detach())
        return loss

    def on_train_end(self) -> None:
        devices = sorted({str(parameter.device) for parameter in self.parameters()})
        self.places = {
            "parameters": devices,
            "on_gpu": self.on_gpu,
        }  # Lightning takes the model back to the host

    def evaluate(self, batch: dict[str, torch.Tensor], stage: str) -> None:
        guess = self(batch["input_ids"])
        self.accuracy(guess, batch["labels"])
        self.log(f"{stage}_loss", nn.functional.cross_entropy(guess, batch["labels"]), sync_dist=True)
        self.log(f"{stage}_accuracy", self.accuracy, on_epoch=True)

    def validation_step(self, batch: dict[str, torch.Tensor], index: int) -> None:
        self.evaluate(batch, "val")

    def test_step(self, batch: dict[str, torch.Tensor], index: int) -> None:
        self.evaluate(batch, "test")

    def predict_step(self, batch: dict[str, torch.Tensor], index: int) -> torch.Tensor:
        return self(batch["input_ids"]).argmax(-1)

    def configure_optimizers(self) -> dict[str, object]:
        optimizer = torch.optim.AdamW(self.parameters(), lr=self.hparams.lr)
        return {"optimizer": optimizer, "lr_scheduler": torch.optim.lr_scheduler.StepLR(optimizer, 2)}


def loader(size: int, seed: int, workers: int, shuffle: bool = False) -> DataLoader:
    return DataLoader(
        Sentences(size, seed), 4, shuffle=shuffle, num_workers=workers, persistent_workers=workers > 0, pin_memory=True
    )  # fmt: skip


def evaluated(trainer: L.Trainer, model: Classifier) -> dict[str, object]:
    validated = trainer.validate(model, loader(32, 2, 0), verbose=False)[0]
    tested = trainer.test(model, loader(32, 3, 0), verbose=False, ckpt_path="best")[0]
    guesses = trainer.predict(model, loader(16, 3, 0))  # None if they are another process's
    return {
        "validated": validated,
        "tested": tested,
        "predicted": len(torch.cat(guesses)) if guesses else None,
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--accelerator", default="gpu")
    parser.add_argument("--devices", type=int, default=1)
    parser.add_argument("--strategy", default="auto")
    parser.add_argument("--precision", default="32-true")
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--fit-only", action="store_true")  # a model that was sharded can't be used again
    parser.add_argument("--profiler", choices=("pytorch", "nvtx"))
    parser.add_argument("--resume", action="store_true")
    args = parser.parse_args()

    L.seed_everything(7, workers=True)
    checkpoints = ModelCheckpoint(args.folder / "checkpoints", monitor="val_loss", save_last=True)
    profilers = {"pytorch": "pytorch", "nvtx": PyTorchProfiler(emit_nvtx=True)}
    trainer = L.Trainer(
        accelerator=args.accelerator, devices=args.devices, strategy=args.strategy, precision=args.precision,
        max_epochs=args.epochs, accumulate_grad_batches=2,
        gradient_clip_val=None if args.strategy == "fsdp" else 1.0,  # Lightning can't clip what is sharded
        log_every_n_steps=1,
        callbacks=[checkpoints, LearningRateMonitor(), DeviceStatsMonitor()], logger=CSVLogger(args.folder),
        profiler=profilers.get(args.profiler),
        enable_progress_bar=False, enable_model_summary=False,
    )  # fmt: skip
    model = Classifier()
    trainer.fit(
        model,
        loader(64, 1, args.workers, shuffle=True),
        loader(32, 2, args.workers),
        ckpt_path=str(args.folder / "checkpoints" / "last.ckpt") if args.resume else None,
    )
    results = {} if args.fit_only else evaluated(trainer, model)
    if trainer.is_global_zero:
        report = {
            "device": str(trainer.strategy.root_device),
            **model.places,
            "accelerator": type(trainer.accelerator).__name__,
            "processes": trainer.world_size,
            "losses": [loss.item() for loss in model.losses],
            **results,
            "steps": trainer.global_step,
            "peak": torch.cuda.max_memory_allocated() if args.accelerator == "gpu" else 0,
        }
        print(json.dumps(report))


if __name__ == "__main__":
    main()
