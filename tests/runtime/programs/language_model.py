"""A small GPT as its training programs write it: device_type, ptdtype, nullcontext, pinned batches, fused AdamW."""
# ruff: noqa -- written as such programs are

import inspect
import math
from contextlib import nullcontext

import numpy as np
import torch
import torch.nn as nn
from torch.nn import functional as F

device = "cuda"
dtype = "bfloat16" if torch.cuda.is_available() and torch.cuda.is_bf16_supported() else "float16"
torch.manual_seed(1337)
torch.backends.cuda.matmul.allow_tf32 = True
torch.backends.cudnn.allow_tf32 = True
device_type = "cuda" if "cuda" in device else "cpu"
ptdtype = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}[dtype]
ctx = nullcontext() if device_type == "cpu" else torch.amp.autocast(device_type=device_type, dtype=ptdtype)
data = np.random.randint(0, 17, 200).astype(np.uint16)


def get_batch():
    ix = torch.randint(len(data) - 8, (4,))
    x = torch.stack([torch.from_numpy((data[i : i + 8]).astype(np.int64)) for i in ix])
    y = torch.stack([torch.from_numpy((data[i + 1 : i + 9]).astype(np.int64)) for i in ix])
    if device_type == "cuda":
        x, y = x.pin_memory().to(device, non_blocking=True), y.pin_memory().to(device, non_blocking=True)
    else:
        x, y = x.to(device), y.to(device)
    return x, y


class Block(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.ln, self.attn, self.proj = nn.LayerNorm(n), nn.Linear(n, 3 * n), nn.Linear(n, n)

    def forward(self, x):
        b, t, c = x.size()
        q, k, v = (one.view(b, t, 2, c // 2).transpose(1, 2) for one in self.attn(self.ln(x)).split(c, dim=2))
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=None, dropout_p=0, is_causal=True)
        return x + self.proj(y.transpose(1, 2).contiguous().view(b, t, c))


class GPT(nn.Module):
    def __init__(self, n=16):
        super().__init__()
        self.wte, self.wpe, self.h, self.head = (
            nn.Embedding(17, n),
            nn.Embedding(8, n),
            Block(n),
            nn.Linear(n, 17),
        )

    def forward(self, idx, targets):
        pos = torch.arange(0, idx.size(1), dtype=torch.long, device=idx.device)
        logits = self.head(self.h(self.wte(idx) + self.wpe(pos)))
        return F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1), ignore_index=-1)


model = GPT()
model.to(device)
scaler = torch.cuda.amp.GradScaler(enabled=(dtype == "float16"))
fused_available = "fused" in inspect.signature(torch.optim.AdamW).parameters
extra_args = dict(fused=True) if fused_available and device_type == "cuda" else dict()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, betas=(0.9, 0.95), **extra_args)
losses = []
X, Y = get_batch()
for iter_num in range(4):
    for micro_step in range(2):
        with ctx:
            loss = model(X, Y) / 2
        X, Y = get_batch()
        scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad(set_to_none=True)
    losses.append(loss.item() * 2)
assert math.isfinite(torch.cuda.max_memory_allocated() / 1e9)
models = [model]
