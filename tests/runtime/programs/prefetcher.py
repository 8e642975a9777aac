"""The prefetcher of NVIDIA's examples: a stream of its own, record_stream, and events that time the steps."""
# ruff: noqa -- written as such programs are

import torch


class data_prefetcher:
    def __init__(self, loader):
        self.loader = iter(loader)
        self.stream = torch.cuda.Stream()
        self.mean = torch.tensor([0.485 * 255, 0.456 * 255, 0.406 * 255]).cuda().view(1, 3, 1, 1)
        self.std = torch.tensor([0.229 * 255, 0.224 * 255, 0.225 * 255]).cuda().view(1, 3, 1, 1)
        self.preload()

    def preload(self):
        try:
            self.next_input, self.next_target = next(self.loader)
        except StopIteration:
            self.next_input = None
            self.next_target = None
            return
        with torch.cuda.stream(self.stream):
            self.next_input = self.next_input.cuda(non_blocking=True)
            self.next_target = self.next_target.cuda(non_blocking=True)
            self.next_input = self.next_input.float()
            self.next_input = self.next_input.sub_(self.mean).div_(self.std)

    def next(self):
        torch.cuda.current_stream().wait_stream(self.stream)
        input = self.next_input
        target = self.next_target
        if input is not None:
            input.record_stream(torch.cuda.current_stream())
        if target is not None:
            target.record_stream(torch.cuda.current_stream())
        self.preload()
        return input, target


local_rank = 0
torch.cuda.set_device(local_rank)
dataset = torch.utils.data.TensorDataset(torch.randint(0, 255, (6, 3, 8, 8)).byte(), torch.arange(6) % 3)
loader = torch.utils.data.DataLoader(dataset, batch_size=2, pin_memory=True)
model = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.Flatten(), torch.nn.Linear(144, 3))
model = model.cuda().to(memory_format=torch.channels_last)
criterion = torch.nn.CrossEntropyLoss().cuda()
optimizer = torch.optim.SGD(model.parameters(), 0.01)
losses, times = [], []
prefetcher = data_prefetcher(loader)
input, target = prefetcher.next()
while input is not None:
    start = torch.cuda.Event(enable_timing=True)
    end = torch.cuda.Event(enable_timing=True)
    start.record()
    torch.cuda.nvtx.range_push("forward")
    loss = criterion(model(input.contiguous(memory_format=torch.channels_last)), target)
    torch.cuda.nvtx.range_pop()
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    end.record()
    torch.cuda.synchronize()
    times.append(start.elapsed_time(end))
    losses.append(loss.item())
    input, target = prefetcher.next()
models = [model]
