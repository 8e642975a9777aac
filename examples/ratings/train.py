"""Predicts ratings from the words of reviews: a small program for one GPU, whose operators not every device has."""

import argparse

import torch
from torch import nn

WORDS, WORDS_OF_A_REVIEW = 1000, 20


class Rater(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.EmbeddingBag(WORDS, 64, mode="mean")
        self.body = nn.Sequential(nn.Linear(64, 128), nn.GELU(), nn.Dropout(0.1))
        self.score = nn.Linear(128, 1)

    def forward(self, reviews):
        return self.score(self.body(self.words(reviews))).squeeze(1)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--batch-size", type=int, default=256)
    args = parser.parse_args()

    torch.manual_seed(0)
    device = torch.device("cuda")
    worth = torch.randn(WORDS, device=device)
    model = Rater().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for step in range(args.steps):
        reviews = torch.randint(WORDS, (args.batch_size, WORDS_OF_A_REVIEW), device=device)
        ratings = worth[reviews].mean(1)
        loss = nn.functional.huber_loss(model(reviews), ratings)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 10 == 0:
            print(f"step {step}: loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
