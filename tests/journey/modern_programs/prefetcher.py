"""A data prefetcher in the manner of apex's examples: pinned batches of two workers, copied on a side stream."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Prefetcher:
    def __init__(self, loader):
        self.loader, self.stream = iter(loader), torch.cuda.Stream()
        self.mean = torch.tensor([0.5] * 6).cuda()
        self.preload()

    def preload(self):
        try:
            x, y = next(self.loader)
        except StopIteration:
            self.batch = None
            return
        with torch.cuda.stream(self.stream):
            self.batch = x.cuda(non_blocking=True).sub_(self.mean), y.cuda(non_blocking=True)

    def next(self):
        torch.cuda.current_stream().wait_stream(self.stream)
        batch = self.batch
        if batch is not None:
            for tensor in batch:
                tensor.record_stream(torch.cuda.current_stream())
            self.preload()
        return batch


if __name__ == "__main__":
    data = TensorDataset(torch.randn(24, 6), torch.randint(0, 3, (24,)))
    prefetcher = Prefetcher(DataLoader(data, 8, num_workers=2, pin_memory=True))
    model = nn.Linear(6, 3).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    while (batch := prefetcher.next()) is not None:
        loss = nn.functional.cross_entropy(model(batch[0]), batch[1])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(loss.item())
