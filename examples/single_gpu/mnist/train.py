"""Train a small convolutional network on pictures of digits, on one GPU."""

import argparse
import os

import torch
import torch.nn.functional as F
from digits import Digits
from net import Net
from torch import nn, optim
from torch.utils.data import DataLoader


def train(args, model, device, train_loader, optimizer, epoch):
    model.train()
    for batch_idx, (data, target) in enumerate(train_loader):
        data, target = data.to(device), target.to(device)
        optimizer.zero_grad()
        output = model(data)
        loss = F.cross_entropy(output, target)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        if batch_idx % args.log_interval == 0:
            print(f"Train Epoch: {epoch} [{batch_idx}/{len(train_loader)}]\tLoss: {loss.item():.6f}")


def test(model, device, test_loader):
    model.eval()
    test_loss = 0
    correct = 0
    with torch.no_grad():
        for data, target in test_loader:
            data, target = data.to(device), target.to(device)
            output = model(data)
            test_loss += F.cross_entropy(output, target, reduction="sum").item()
            correct += output.argmax(dim=1).eq(target).sum().item()
    accuracy = correct / len(test_loader.dataset)
    print(f"Test set: average loss {test_loss / len(test_loader.dataset):.4f}, accuracy {accuracy:.3f}")
    return accuracy


def main():
    parser = argparse.ArgumentParser(description="digits")
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--lr", type=float, default=0.05)
    parser.add_argument("--samples", type=int, default=512)
    parser.add_argument("--log-interval", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--resume", default="", help="checkpoint to go on from")
    parser.add_argument("--out", default="checkpoints")
    args = parser.parse_args()

    torch.manual_seed(args.seed)
    device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    if not os.path.exists(args.out):
        os.makedirs(args.out)

    train_loader = DataLoader(Digits(args.samples), args.batch_size, shuffle=True, drop_last=True)
    test_loader = DataLoader(Digits(args.samples // 4, seed=1), batch_size=64)

    model = Net().to(device)
    optimizer = optim.SGD(model.parameters(), lr=args.lr, momentum=0.9)
    start, best = 0, 0.0
    if args.resume:
        checkpoint = torch.load(args.resume, map_location="cuda:0")
        model.load_state_dict(checkpoint["model"])
        optimizer.load_state_dict(checkpoint["optimizer"])
        start, best = checkpoint["epoch"], checkpoint["best"]

    for epoch in range(start, args.epochs):
        train(args, model, device, train_loader, optimizer, epoch)
        accuracy = test(model, device, test_loader)
        if accuracy > best:
            best = accuracy
            torch.save(model.state_dict(), os.path.join(args.out, "best.pt"))
        torch.save(
            {
                "epoch": epoch + 1,
                "best": best,
                "model": model.state_dict(),
                "optimizer": optimizer.state_dict(),
            },
            os.path.join(args.out, "last.pt"),
        )
    if best:
        model.load_state_dict(torch.load(os.path.join(args.out, "best.pt")))
        print("best model:")
        test(model, device, test_loader)


if __name__ == "__main__":
    main()
