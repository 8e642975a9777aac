"""Helpers that programs share: to_cuda over nested batches, typed strings, one-hot by scatter, device by number."""
# ruff: noqa -- written as such programs are

import torch
import torch.nn as nn
import torch.nn.functional as F


def to_cuda(batch, device=None):
    if torch.is_tensor(batch):
        return batch.cuda(device, non_blocking=True) if not batch.is_cuda else batch
    if isinstance(batch, dict):
        return {key: to_cuda(value, device) for key, value in batch.items()}
    return [to_cuda(one, device) for one in batch]


def make_one_hot(labels, classes):
    if labels.is_cuda:
        one_hot = torch.cuda.FloatTensor(
            labels.size()[0], classes, labels.size()[2], labels.size()[3]
        ).zero_()
    else:
        one_hot = torch.FloatTensor(labels.size()[0], classes, labels.size()[2], labels.size()[3]).zero_()
    return one_hot.scatter_(1, labels.data, 1)


class DiceLoss(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.register_buffer("weight", torch.ones(classes))

    def forward(self, output, target):
        target = make_one_hot(target.unsqueeze(dim=1), classes=output.size()[1])
        output = F.softmax(output, dim=1) * self.weight.view(1, -1, 1, 1)
        return 1 - (2.0 * (output * target).sum() + 1) / (output.sum() + target.sum() + 1)


n_gpu = torch.cuda.device_count()
assert n_gpu > 0, "There's no GPU available on this machine"
device_ids = list(range(n_gpu))
device = torch.device("cuda:0" if n_gpu > 0 else "cpu")
model = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.GroupNorm(2, 8), nn.ReLU(), nn.Conv2d(8, 4, 1))
if torch.cuda.get_device_capability(device)[0] >= 7:
    model = model.to(memory_format=torch.channels_last)
model.to(device)
criterion = DiceLoss(4).to(device)
optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3, foreach=True)
losses = []
for _ in range(3):
    batch = to_cuda({"image": torch.randn(2, 3, 8, 8), "labels": [torch.randint(0, 4, (2, 8, 8))]}, device)
    assert batch["image"].type() == "torch.cuda.FloatTensor" and batch["labels"][0].device.type == "cuda"
    output = model(batch["image"].to(memory_format=torch.channels_last))
    output = F.interpolate(output, scale_factor=2, mode="bilinear", align_corners=False)
    loss = criterion(F.avg_pool2d(output, 2), batch["labels"][0])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
if "cuda" == device.type:
    torch.cuda.empty_cache()
grid = torch.meshgrid(torch.arange(2, device=0), torch.arange(2, device="cuda"), indexing="ij")
assert grid[0].get_device() == 0
models = [model, criterion]
