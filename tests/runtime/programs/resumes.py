"""Checkpoints: saved, resumed with the lambda and with the format string of public repositories; best model kept."""
# ruff: noqa -- written as such programs are

import os
import shutil
import tempfile

import torch
import torch.nn as nn

gpu = 0
torch.cuda.set_device(gpu)
folder = tempfile.mkdtemp()


def save_checkpoint(state, is_best, filename="checkpoint.pth.tar"):
    filename = os.path.join(folder, filename)
    torch.save(state, filename)
    if is_best:
        shutil.copyfile(filename, os.path.join(folder, "model_best.pth.tar"))


def build():
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)).cuda(gpu)
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.5)
    return model, optimizer, scheduler


model, optimizer, scheduler = build()
losses = []
best_acc1 = torch.tensor(0.0).cuda(gpu)
for epoch in range(2):
    loss = model(torch.randn(3, 4).cuda(gpu, non_blocking=True)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
    losses.append(loss.item())
    save_checkpoint(
        {
            "epoch": epoch + 1,
            "state_dict": model.state_dict(),
            "best_acc1": best_acc1,
            "optimizer": optimizer.state_dict(),
            "scheduler": scheduler.state_dict(),
            "rng": torch.cuda.get_rng_state_all(),
        },
        True,
    )
path = os.path.join(folder, "model_best.pth.tar")
models = []
for location in (
    None,
    "cuda:{}".format(gpu),
    "cuda:%d" % gpu,
    torch.device("cuda", gpu),
    lambda storage, loc: storage,
    lambda storage, loc: storage.cuda(gpu),
    {"cuda:%d" % 0: "cuda:%d" % gpu},
):
    checkpoint = torch.load(path, map_location=location, weights_only=False)
    resumed, optimizer, scheduler = build()
    resumed.load_state_dict(checkpoint["state_dict"])
    optimizer.load_state_dict(checkpoint["optimizer"])
    scheduler.load_state_dict(checkpoint["scheduler"])
    torch.cuda.set_rng_state_all([state.cpu() for state in checkpoint["rng"]])
    acc = checkpoint["best_acc1"].to(gpu)
    loss = resumed(torch.ones(3, 4, device=torch.cuda.current_device())).pow(2).mean()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
    models.append(resumed)
shutil.rmtree(folder)
