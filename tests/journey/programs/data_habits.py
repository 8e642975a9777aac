"""A trainer with every habit of data and loaders that is made for CUDA."""

import numpy as np
import torch
from torch.utils.data import DataLoader, TensorDataset

torch.backends.cudnn.benchmark = True
torch.backends.cuda.matmul.allow_tf32 = True
torch.manual_seed(0)

points = np.random.default_rng(0).normal(size=(70, 8))
inputs = torch.from_numpy(points.astype(np.float64))
labels = torch.from_numpy((points.sum(1) > 0).astype(np.int64))
train_loader = DataLoader(TensorDataset(inputs, labels), batch_size=16, pin_memory=True)
val_loader = DataLoader(TensorDataset(inputs, labels), batch_size=16, pin_memory=True)

model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2)).double().cuda()
criterion = torch.nn.CrossEntropyLoss().cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)

for epoch in range(6):
    for images, target in train_loader:
        images = images.cuda(non_blocking=True)
        target = target.cuda(non_blocking=True)
        loss = criterion(model(images), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
print("steps", len(train_loader), "evaluated", sum(len(batch) for batch, _ in val_loader))
print("dtypes", images.dtype, target.dtype, "shape", tuple(images.shape), "pinned", train_loader.pin_memory)
print("loss", loss.item())
