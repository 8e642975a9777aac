"""A small text classifier: embeddings, one attention block, a head."""

import torch
from torch import nn
from torch.nn import functional

try:
    from apex.normalization import FusedLayerNorm
except ImportError:
    FusedLayerNorm = nn.LayerNorm

try:
    from flash_attn import flash_attn_func
except ImportError:
    flash_attn_func = None


class Classifier(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.heads = config.heads
        self.embedding = nn.Embedding(config.vocabulary, config.width)
        self.norm = FusedLayerNorm(config.width)
        self.qkv = nn.Linear(config.width, 3 * config.width)
        self.out = nn.Linear(config.width, config.width)
        self.head = nn.Linear(config.width, config.classes)

    def forward(self, tokens):
        x = self.embedding(tokens)
        x = x + self.attention(self.norm(x))
        return self.head(x.mean(dim=1))

    def attention(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, self.heads, width // self.heads).unbind(dim=2)
        if flash_attn_func is not None and x.is_cuda and x.dtype == torch.float16:
            mixed = flash_attn_func(q, k, v)
        else:
            swapped = (t.transpose(1, 2) for t in (q, k, v))
            mixed = functional.scaled_dot_product_attention(*swapped).transpose(1, 2)
        return self.out(mixed.reshape(batch, length, width))
