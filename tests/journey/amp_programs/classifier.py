"""A small convolutional classifier: training function and main apart, clipped gradients, a schedule, checkpoints."""

import argparse
import os

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.optim.lr_scheduler import StepLR
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3)
        self.conv2 = nn.Conv2d(8, 16, 3)
        self.fc = nn.Linear(16 * 4 * 4, 4)

    def forward(self, x):
        x = F.relu(self.conv1(x))
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        return F.log_softmax(self.fc(torch.flatten(x, 1)), dim=1)


def blobs(count):
    """Images of noise with one bright quarter; which one is the label."""
    generator = torch.Generator().manual_seed(7)
    labels = torch.randint(0, 4, (count,), generator=generator)
    images = torch.randn(count, 1, 12, 12, generator=generator)
    for image, label in zip(images, labels):
        row, column = divmod(int(label), 2)
        image[0, row * 6 : row * 6 + 6, column * 6 : column * 6 + 6] += 1.0
    return TensorDataset(images, labels)


def train(args, model, device, train_loader, optimizer, epoch):
    model.train()
    for batch_idx, (data, target) in enumerate(train_loader):
        data, target = data.to(device), target.to(device)
        optimizer.zero_grad()
        output = model(data)
        loss = F.nll_loss(output, target) * args.loss_factor
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), args.clip)
        optimizer.step()
        print(f"epoch {epoch} step {batch_idx} loss {loss.item() / args.loss_factor:.6f}")


def test(model, device, test_loader):
    model.eval()
    correct = 0
    with torch.no_grad():
        for data, target in test_loader:
            data, target = data.to(device), target.to(device)
            correct += model(data).argmax(dim=1).eq(target).sum().item()
    print(f"accuracy {correct / len(test_loader.dataset):.4f}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--clip", type=float, default=1.0)
    parser.add_argument("--loss-factor", type=float, default=1.0)
    parser.add_argument("--resume", default="")
    parser.add_argument("--save", default="")
    args = parser.parse_args()

    torch.manual_seed(1)
    device = torch.device("cuda")
    loader = DataLoader(blobs(256), batch_size=32)
    model = Net().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    scheduler = StepLR(optimizer, step_size=1, gamma=0.7)
    start = 0
    if args.resume and os.path.isfile(args.resume):
        checkpoint = torch.load(args.resume, map_location=device)
        start = checkpoint["epoch"]
        model.load_state_dict(checkpoint["model"])
        optimizer.load_state_dict(checkpoint["optimizer"])
        scheduler.load_state_dict(checkpoint["scheduler"])
    for epoch in range(start, args.epochs):
        train(args, model, device, loader, optimizer, epoch)
        scheduler.step()
        if args.save:
            torch.save(
                {
                    "epoch": epoch + 1,
                    "model": model.state_dict(),
                    "optimizer": optimizer.state_dict(),
                    "scheduler": scheduler.state_dict(),
                },
                args.save,
            )
    test(model, device, loader)


if __name__ == "__main__":
    main()
