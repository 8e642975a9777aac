"""Recommendation: RecVAE."""

from __future__ import annotations

import copy
import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from torchferry.text import Text

from .entry import Batch, ModelEntry, Origin, Turn, adam

_ITEMS = 500
_GAMMA = 0.005


def _log_normal(value: Tensor, mean: Tensor, log_variance: Tensor) -> Tensor:
    """Log density of a normal distribution."""
    return -0.5 * (log_variance + math.log(2 * math.pi) + (value - mean) ** 2 / log_variance.exp())


class _Encoder(nn.Module):
    """Five layers, each fed by the sum of all before it."""

    def __init__(self, hidden: int, latent: int):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(hidden if layer else _ITEMS, hidden) for layer in range(5))
        self.norms = nn.ModuleList(nn.LayerNorm(hidden, eps=0.1) for _ in range(5))
        self.mean = nn.Linear(hidden, latent)
        self.log_variance = nn.Linear(hidden, latent)

    def forward(self, ratings: Tensor, dropout: float) -> tuple[Tensor, Tensor]:
        value = functional.dropout(functional.normalize(ratings, dim=1), dropout, self.training)
        total: Tensor | None = None
        for layer, norm in zip(self.layers, self.norms, strict=True):
            value = layer(value) if total is None else layer(total) + total
            value = functional.silu(norm(value))
            total = value if total is None else total + value
        return self.mean(value), self.log_variance(value)


class RecVae(nn.Module):
    """A variational autoencoder of what a user liked; its prior remembers the encoder of before."""

    def __init__(self, hidden: int = 600, latent: int = 200):
        super().__init__()
        self.encoder = _Encoder(hidden, latent)
        self.earlier = copy.deepcopy(self.encoder).requires_grad_(False)
        self.decoder = nn.Linear(latent, _ITEMS)
        self.register_buffer("shares", torch.tensor([3 / 20, 3 / 4, 1 / 10]).log())

    def forward(self, ratings: Tensor, dropout: float) -> Tensor:
        """The evidence lower bound, negated."""
        mean, log_variance = self.encoder(ratings, dropout)
        spread = torch.exp(0.5 * log_variance)
        latent = mean + torch.randn_like(spread) * spread
        likelihood = (self.decoder(latent).log_softmax(1) * ratings).sum(1)
        divergence = (_log_normal(latent, mean, log_variance) - self._prior(ratings, latent)).sum(1)
        return -(likelihood - _GAMMA * ratings.sum(1) * divergence).mean()

    def _prior(self, ratings: Tensor, latent: Tensor) -> Tensor:
        """A mixture: standard normal, the earlier encoder's posterior, and a wide normal."""
        zero = torch.zeros_like(latent)
        parts = [
            _log_normal(latent, zero, zero),
            _log_normal(latent, *self.earlier(ratings, 0.0)),
            _log_normal(latent, zero, torch.full_like(zero, 10.0)),
        ]
        weighted = [part + share for part, share in zip(parts, self.shares, strict=True)]
        return torch.logsumexp(torch.stack(weighted, dim=-1), dim=-1)

    def remember(self) -> None:
        """Make today's encoder the prior's."""
        self.earlier.load_state_dict(self.encoder.state_dict())


def _users() -> Batch:
    return {"ratings": (torch.rand(32, _ITEMS) < 0.05).float()}


def _encoder_loss(model: RecVae, batch: Batch) -> Tensor:
    """The encoder learns from ratings of which half are hidden."""
    loss: Tensor = model(batch["ratings"], 0.5)
    return loss


def _decoder_loss(model: RecVae, batch: Batch) -> Tensor:
    """The decoder learns from whole ratings, after the prior has moved on."""
    model.remember()
    loss: Tensor = model(batch["ratings"], 0.0)
    return loss


ENTRIES = [
    ModelEntry(
        "RecVAE",
        Origin.OWN,
        "arXiv:1912.11160",
        build=RecVae,
        batch=_users,
        turns=(Turn(_encoder_loss, ("encoder",)), Turn(_decoder_loss, ("decoder",))),
        optimizer=adam,
        note=Text("500 items.", "500 个物品。"),
    )
]
