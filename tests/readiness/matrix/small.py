"""Small models that need no library, for every day: recurrent layers, a convolutional network and a transformer."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor, nn
from torch.nn import functional

from tests.sim.models import language
from tests.sim.models.data import CLASSES, labelled_pictures, labels
from tests.sim.models.entry import Batch, ModelEntry, Origin, adam, trained_with

_WORDS = 50
_WIDTH = 16


class Classifier(nn.Sequential):
    """Convolution, batch normalization, pooling and dropout."""

    def __init__(self) -> None:
        super().__init__(
            nn.Conv2d(3, 8, 3, padding=1, bias=False),
            nn.BatchNorm2d(8),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(2),
            nn.Upsample(scale_factor=2, mode="bilinear"),
            nn.Conv2d(8, 8, 3, groups=8),
            nn.LeakyReLU(0.1),
            nn.AdaptiveAvgPool2d(2),
            nn.Flatten(),
            nn.Dropout(0.5),
            nn.Linear(32, CLASSES),
        )


def _classification_loss(model: nn.Module, batch: Batch) -> Tensor:
    return functional.cross_entropy(model(batch["pictures"]), batch["labels"], label_smoothing=0.1)


class Writer(nn.Module):
    """A transformer that predicts the next word; positions are made on the device, the mask is moved there."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(_WORDS, _WIDTH)
        self.positions = nn.Embedding(8, _WIDTH)
        layer = nn.TransformerEncoderLayer(_WIDTH, 2, 32, activation="gelu", batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.output = nn.Linear(_WIDTH, _WORDS)

    def forward(self, words: Tensor) -> Tensor:
        length = words.shape[1]
        positions = torch.arange(length, device=words.device)
        mask = _causal(length).to(words.device)
        output: Tensor = self.output(self.layers(self.words(words) + self.positions(positions), mask=mask))
        return output


def _causal(length: int, device: str = "cpu") -> Tensor:
    """As libraries have it: what is made on the CPU by default."""
    return torch.stack([torch.arange(length, device=device) > row for row in range(length)])


def _writing_loss(model: nn.Module, batch: Batch) -> Tensor:
    return functional.cross_entropy(model(batch["words"]).flatten(0, 1), batch["next"].flatten())


_TRANSLATOR, _LISTENER = language.ENTRIES
SMALL = {
    entry.name: entry
    for entry in (
        replace(_TRANSLATOR, build=lambda: language.Translator(8, 16)),
        replace(_LISTENER, build=lambda: language.AcousticModel(2, 8, 2)),
        ModelEntry(
            "classifier",
            Origin.OWN,
            "",
            build=Classifier,
            batch=lambda: labelled_pictures(4, 16),
            turns=trained_with(_classification_loss),
        ),
        ModelEntry(
            "transformer",
            Origin.OWN,
            "",
            build=Writer,
            batch=lambda: {"words": labels(2, 8, classes=_WORDS), "next": labels(2, 8, classes=_WORDS)},
            turns=trained_with(_writing_loss, clip=1.0),
            optimizer=adam,
        ),
    )
}
