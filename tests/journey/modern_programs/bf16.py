"""bfloat16 by default, on a default device: an LSTM."""

import torch
from torch import nn

torch.set_default_device("cuda")
torch.set_default_dtype(torch.bfloat16)


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.lstm, self.head = (
            nn.Embedding(20, 8),
            nn.LSTM(8, 8, batch_first=True),
            nn.Linear(8, 4),
        )

    def forward(self, words):
        return self.head(self.lstm(self.words(words))[0])


model = Tagger()
assert next(model.parameters()).is_cuda
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    words = torch.randint(0, 20, (2, 5))
    loss = nn.functional.cross_entropy(model(words).flatten(0, 1).float(), words.flatten() % 4)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
