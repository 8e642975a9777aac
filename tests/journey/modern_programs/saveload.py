"""Checkpoints saved and loaded with every form of map_location, and training resumed from each."""

import io

import torch
from torch import nn

device = torch.device("cuda:0")
model = nn.Linear(6, 3).to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
places = [
    None, "cpu", "cuda", "cuda:0", torch.device("cpu"), torch.device("cuda"), device, {"cuda:0": "cpu"},
    lambda storage, place: storage, lambda storage, place: storage.cuda(0),
]  # fmt: skip
for place in places:
    loss = model(torch.randn(4, 6, device=device)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    file = io.BytesIO()
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, file)
    file.seek(0)
    state = torch.load(file, map_location=place)
    nn.init.zeros_(model.weight)
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    assert next(model.parameters()).is_cuda
print(loss.item())
