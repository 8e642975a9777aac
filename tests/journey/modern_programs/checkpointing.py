"""Activation checkpointing round scaled_dot_product_attention, with dropout, under bfloat16 autocast."""

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


class Block(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.qkv, self.out, self.drop = nn.Linear(width, 3 * width), nn.Linear(width, width), nn.Dropout(0.1)

    def forward(self, x):
        q, k, v = self.qkv(x).unflatten(-1, (3, 2, -1)).permute(2, 0, 3, 1, 4)
        mixed = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return x + self.drop(self.out(mixed.transpose(1, 2).flatten(2)))


blocks, head = nn.ModuleList(Block() for _ in range(2)).cuda(), nn.Linear(16, 5).cuda()
optimizer = torch.optim.AdamW([*blocks.parameters(), *head.parameters()], lr=1e-2)
for _ in range(3):
    x, y = torch.randn(2, 6, 16, device="cuda"), torch.randint(0, 5, (12,), device="cuda")
    with torch.autocast("cuda", dtype=torch.bfloat16):
        for block in blocks:
            x = checkpoint(block, x, use_reentrant=False)
        loss = nn.functional.cross_entropy(head(x).flatten(0, 1).float(), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
