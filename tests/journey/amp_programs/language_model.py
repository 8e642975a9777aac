"""A transformer that learns to repeat: gradients of several batches are added up before each step."""

import torch
import torch.nn as nn

VOCABULARY, LENGTH, WIDTH, ACCUMULATE = 16, 12, 32, 4


class LanguageModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.position = nn.Parameter(torch.zeros(1, LENGTH, WIDTH))
        layer = nn.TransformerEncoderLayer(WIDTH, 4, 64, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 1)
        self.head = nn.Linear(WIDTH, VOCABULARY)

    def forward(self, tokens, targets=None):
        hidden = self.embedding(tokens) + self.position
        mask = torch.full((LENGTH, LENGTH), float("-inf"), device=tokens.device).triu(1)
        logits = self.head(self.encoder(hidden, mask=mask))
        loss = None
        if targets is not None:
            loss = nn.functional.cross_entropy(logits.view(-1, VOCABULARY), targets.reshape(-1))
        return logits, loss


def batches(count, size):
    generator = torch.Generator().manual_seed(3)
    for _ in range(count):
        first = torch.randint(0, VOCABULARY, (size, 1), generator=generator)
        step = torch.randint(1, 4, (size, 1), generator=generator)
        sequence = (first + step * torch.arange(LENGTH + 1)) % VOCABULARY
        yield sequence[:, :-1], sequence[:, 1:]


def main():
    torch.manual_seed(0)
    model = LanguageModel().cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    optimizer.zero_grad()
    for i, (x, y) in enumerate(batches(120, 16)):
        x = x.cuda(non_blocking=True)
        y = y.cuda(non_blocking=True)
        logits, loss = model(x, y)
        loss = loss / ACCUMULATE
        loss.backward()
        if (i + 1) % ACCUMULATE == 0:
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
            print(f"step {i // ACCUMULATE} loss {loss.item() * ACCUMULATE:.6f}")


if __name__ == "__main__":
    main()
