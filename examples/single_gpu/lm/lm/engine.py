"""The training loop."""

import logging

import torch

logger = logging.getLogger(__name__)


class Trainer:
    def __init__(self, model, train_loader, val_loader, args):
        self.args = args
        self.device = f"cuda:{args.gpu}"
        self.train_loader = train_loader
        self.val_loader = val_loader
        self.model = model.to(self.device)
        self.optimizer = self.model.configure_optimizers(args.lr)

    def fit(self):
        for epoch in range(self.args.epochs):
            loss = self.train_epoch()
            val = self.evaluate()
            logger.info("epoch %d: loss %.4f, val %.4f", epoch, loss, val)
            self.save(epoch)

    def train_epoch(self):
        self.model.train()
        total = 0.0
        for x, y in self.train_loader:
            x, y = x.to(self.device), y.to(self.device)
            _, loss = self.model(x, y)
            self.optimizer.zero_grad(set_to_none=True)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            self.optimizer.step()
            total += loss.item()
        return total / len(self.train_loader)

    @torch.no_grad()
    def evaluate(self):
        self.model.eval()
        losses = [self.model(x.to(self.device), y.to(self.device))[1].item() for x, y in self.val_loader]
        return sum(losses) / len(losses)

    def save(self, epoch):
        state = {"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict(), "epoch": epoch}
        torch.save(state, self.args.checkpoint)
