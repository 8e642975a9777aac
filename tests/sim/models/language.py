"""Recurrent models: GRU translates sentences, LSTM transcribes speech."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from torchferry.text import Text

from .data import labels
from .entry import Batch, ModelEntry, Origin, adam, trained_with

_PADDING = 0
_WORDS = 1000
_PHONES = 40
_BLANK = 0
_FEATURES = 243
_FRAME_STRIDE = 2


class _Encoder(nn.Module):
    """Reads a sentence; its last state is the context."""

    def __init__(self, embedded: int, hidden: int):
        super().__init__()
        self.embedding = nn.Embedding(_WORDS, embedded, padding_idx=_PADDING)
        self.dropout = nn.Dropout(0.5)
        self.recurrent = nn.GRU(embedded, hidden)

    def forward(self, sentence: Tensor, lengths: Tensor) -> Tensor:
        packed = nn.utils.rnn.pack_padded_sequence(
            self.dropout(self.embedding(sentence)), lengths.cpu(), enforce_sorted=False
        )
        context: Tensor = self.recurrent(packed)[1]
        return context


class _Decoder(nn.Module):
    """Writes one word at a time, and sees the context again at each."""

    def __init__(self, embedded: int, hidden: int):
        super().__init__()
        self.embedding = nn.Embedding(_WORDS, embedded)
        self.dropout = nn.Dropout(0.5)
        self.recurrent = nn.GRU(embedded + hidden, hidden)
        self.output = nn.Linear(embedded + 2 * hidden, _WORDS)

    def forward(self, word: Tensor, state: Tensor, context: Tensor) -> tuple[Tensor, Tensor]:
        embedded = self.dropout(self.embedding(word))
        _, state = self.recurrent(torch.cat([embedded, context[0]], dim=1)[None], state)
        return self.output(torch.cat([embedded, state[0], context[0]], dim=1)), state


class Translator(nn.Module):
    """Encoder and decoder."""

    def __init__(self, embedded: int = 256, hidden: int = 512):
        super().__init__()
        self.encoder = _Encoder(embedded, hidden)
        self.decoder = _Decoder(embedded, hidden)

    def forward(self, source: Tensor, lengths: Tensor, target: Tensor, forced: Tensor) -> Tensor:
        """Logits of each word after the first; where not forced, the decoder goes on from its own word."""
        context = self.encoder(source, lengths)
        state, word, outputs = context, target[0], []
        for position in range(1, len(target)):
            output, state = self.decoder(word, state, context)
            word = torch.where(forced[position], target[position], output.argmax(1))
            outputs.append(output)
        return torch.stack(outputs)


def _sentences() -> Batch:
    """(position, sentence) word numbers; sentences differ in length."""
    count, longest = 16, 12
    lengths = torch.randint(4, longest + 1, (count,))
    positions = torch.arange(longest)[:, None]
    source, target = (
        labels(longest, count, classes=_WORDS - 1) + 1,
        labels(longest, count, classes=_WORDS - 1) + 1,
    )
    return {
        "source": source.masked_fill(positions >= lengths, _PADDING),
        "target": target.masked_fill(positions >= lengths.roll(1), _PADDING),
        "lengths": lengths,
        "forced": torch.rand(longest) < 0.5,
    }


def _translation_loss(model: Translator, batch: Batch) -> Tensor:
    output = model(batch["source"], batch["lengths"], batch["target"], batch["forced"])
    return functional.cross_entropy(
        output.flatten(0, 1), batch["target"][1:].flatten(), ignore_index=_PADDING
    )


class _NormalizedLstm(nn.Module):
    """Batch normalization over all frames, then a bidirectional LSTM."""

    def __init__(self, inputs: int, hidden: int, normalized: bool):
        super().__init__()
        self.normalization = nn.BatchNorm1d(inputs) if normalized else None
        self.recurrent = nn.LSTM(inputs, hidden, bidirectional=True, bias=False)
        self.dropout = nn.Dropout(0.2)

    def forward(self, frames: Tensor) -> Tensor:
        if self.normalization is not None:
            time, count, _ = frames.shape
            frames = self.normalization(frames.flatten(0, 1)).unflatten(0, (time, count))
        return self.dropout(self.recurrent(frames)[0])


class AcousticModel(nn.Module):
    """Two convolutions over filter banks, four bidirectional LSTM layers, and the phones of each frame."""

    def __init__(self, channels: int = 32, hidden: int = 384, layers: int = 4):
        super().__init__()
        self.convolutions = nn.Sequential(
            nn.Conv2d(1, channels, 3, stride=(1, 2), padding=1),
            nn.BatchNorm2d(channels),
            nn.ReLU(inplace=True),
            nn.Dropout(0.2),
            nn.Conv2d(channels, channels, 3, stride=(_FRAME_STRIDE, 2), padding=1),
            nn.BatchNorm2d(channels),
            nn.ReLU(inplace=True),
            nn.Dropout(0.2),
        )
        inputs = channels * -(-_FEATURES // 4)
        self.layers = nn.Sequential(
            *(
                _NormalizedLstm(2 * hidden if layer else inputs, hidden, normalized=layer > 0)
                for layer in range(layers)
            )
        )
        self.normalization = nn.BatchNorm1d(2 * hidden)
        self.phones = nn.Linear(2 * hidden, _PHONES, bias=False)

    def forward(self, frames: Tensor) -> Tensor:
        """(frame, utterance, phone) log probabilities of (utterance, frame, feature) filter banks."""
        value = self.convolutions(frames.unsqueeze(1)).permute(2, 0, 1, 3).flatten(2)
        value = self.layers(value)
        time, count, _ = value.shape
        value = self.phones(self.normalization(value.flatten(0, 1))).unflatten(0, (time, count))
        return value.log_softmax(2)


def _utterances() -> Batch:
    """Filter banks of 60 frames and their phones."""
    count, frames, longest = 8, 60, 10
    return {
        "frames": torch.randn(count, frames, _FEATURES),
        "frame_counts": torch.randint(48, frames + 1, (count,)),
        "phones": labels(count, longest, classes=_PHONES - 1) + 1,
        "phone_counts": torch.randint(5, longest + 1, (count,)),
    }


def _transcription_loss(model: AcousticModel, batch: Batch) -> Tensor:
    summed = functional.ctc_loss(
        model(batch["frames"]),
        batch["phones"],
        batch["frame_counts"] // _FRAME_STRIDE,
        batch["phone_counts"],
        blank=_BLANK,
        reduction="sum",
    )
    return summed / len(batch["frames"])


ENTRIES = [
    ModelEntry(
        "GRU",
        Origin.OWN,
        "arXiv:1406.1078",
        build=Translator,
        batch=_sentences,
        turns=trained_with(_translation_loss, clip=1.0),
        optimizer=adam,
        note=Text("Encoder and decoder; 1,000 words.", "编码器–解码器；词表 1000 个词。"),
    ),
    ModelEntry(
        "LSTM",
        Origin.OWN,
        "Graves and Jaitly 2014",
        build=AcousticModel,
        batch=_utterances,
        turns=trained_with(_transcription_loss, clip=400.0),
        optimizer=adam,
        note=Text(
            "Speech with CTC: the layers and sizes of the vendor's model zoo.",
            "语音识别加 CTC，层与尺寸同厂商模型库。",
        ),
    ),
]
