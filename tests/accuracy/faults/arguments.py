"""Programs that are called with different arguments on the device than golden was: every kernel is right."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from torchferry.accuracy.compare.comparing import compare_records
from torchferry.accuracy.compare.model import RankComparison
from torchferry.accuracy.file.reader import open_record
from torchferry.accuracy.judge.model import Verdict
from torchferry.accuracy.report import sentences

from .trainings import Training, record

_RIGHT: dict[str, Any] = {
    "eps": 1e-5, "approximate": "none", "groups": 4, "dropout": 0.0, "label_smoothing": 0.1, "optimizer": "SGD",
    "lr": 0.1, "momentum": 0.9, "weight_decay": 1e-2, "clipped": 1.0, "padding_mode": "zeros", "penalty": 0.0,
}  # fmt: skip


@dataclass(frozen=True)
class Argument:
    """What the two programs have for one argument, and what must be named of the first place where they differ."""

    name: str
    mine: dict[str, Any]
    operator: str  # a part of its name
    values: tuple[str, ...] = ()  # that must be told
    golden: dict[str, Any] = field(default_factory=dict)
    quick: bool = False

    def compare(self, folder: Path, device: str, *, is_right: bool = False) -> RankComparison:
        """The program on the device against golden on the host; `is_right`: with golden's arguments."""
        mine, golden = folder / "mine.h5", folder / "golden.h5"
        record(Small("cpu", **self.golden), golden)
        record(Small(device, **{**self.golden, **({} if is_right else self.mine)}), mine)
        with open_record(mine) as ours, open_record(golden) as theirs:
            return compare_records(ours, theirs)

    def is_named(self, comparison: RankComparison) -> bool:
        """First, with both values, or with the side that makes the call."""
        if comparison.culprit is None:
            return False
        pair = comparison.pairs[comparison.culprit]
        said = sentences.headline(comparison).en
        return (
            pair.judgement.verdict is Verdict.PROGRAM
            and self.operator in sentences.call_of(pair).operator
            and ".py:" in sentences.where_of(pair).en
            and all(value in said for value in self.values)
        )


ARGUMENTS = [
    Argument("epsilon of a layer norm", {"eps": 1e-3}, "native_layer_norm", ("eps=0.001", "1e-05")),
    Argument("form of a GELU", {"approximate": "tanh"}, "gelu", ("approximate=tanh", "none"), quick=True),
    Argument("learning rate", {"lr": 0.11}, "_foreach_add_", ("alpha=-0.11", "-0.1"), quick=True),
    Argument("momentum", {"momentum": 0.8}, "_foreach_mul_", ("0.8", "0.9")),
    Argument("weight decay", {"weight_decay": 1e-3}, "_foreach_add", ("alpha=0.001", "0.01")),
    Argument("weight decay on one side only", {"weight_decay": 0.0}, "_foreach_add", ("golden",)),
    Argument("label smoothing", {"label_smoothing": 0.2}, "mul", ("0.02", "0.01")),
    Argument("label smoothing on one side only", {"label_smoothing": 0.0}, "", ("golden",)),
    Argument("clipping on one side only", {"clipped": None}, "_foreach_mul_", ("golden",), quick=True),
    Argument("bound of clipping", {"clipped": 0.5}, "mul", ("0.5", "1 in golden")),
    Argument("number of groups", {"groups": 2}, "native_group_norm", ("group=2", "4"), quick=True),
    Argument("chance of dropout", {"dropout": 0.4}, "bernoulli_", ("p=0.6", "0.7"), {"dropout": 0.3}),
    Argument("learning rate of AdamW", {"lr": 0.011}, "_foreach_mul_", ("0.99989", "0.9999"), {"lr": 0.01, "optimizer": "AdamW"}),
    Argument(
        "decay of AdamW on one side only", {"weight_decay": 0.0}, "_foreach_mul_", ("golden",), {"optimizer": "AdamW", "lr": 0.01}
    ),
    Argument("a penalty that golden does not have", {"penalty": 1e-2}, "", ("mine",)),
]  # fmt: skip


class Small(Training):
    """One of each that takes an argument."""

    def __init__(self, device: str, **given: Any) -> None:
        self._given = {**_RIGHT, **given}
        self.clipped = self._given["clipped"]
        super().__init__(device)

    def build(self) -> None:
        given = self._given
        self.model = nn.Sequential(
            nn.Linear(12, 16), nn.LayerNorm(16, eps=given["eps"]), nn.GELU(approximate=given["approximate"]),
            nn.GroupNorm(given["groups"], 16), nn.Dropout(given["dropout"]), nn.Linear(16, 10),
        ).to(self.device)  # fmt: skip
        settings = {name: given[name] for name in ("lr", "weight_decay")}
        if given["optimizer"] == "SGD":
            settings["momentum"] = given["momentum"]
        self.optimizer = getattr(torch.optim, given["optimizer"])(
            self.model.parameters(), foreach=True, **settings
        )

    def loss(self) -> torch.Tensor:
        found = self.model(self.draw(8, 12))
        loss = functional.cross_entropy(
            found, self.choose(10, 8), label_smoothing=self._given["label_smoothing"]
        )
        if self._given["penalty"]:
            loss = loss + self._given["penalty"] * self.model[0].weight.square().sum()
        return loss
