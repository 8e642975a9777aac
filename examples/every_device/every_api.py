"""Uses what training programs commonly use of CUDA, all of it, and prints what came out."""

import argparse
import io
import json
import os
import random

import torch
import torch.cuda.amp as amp
import torch.distributed as dist
from torch import cuda, nn
from torch.cuda.amp import GradScaler, autocast
from torch.nn.parallel import DistributedDataParallel as DDP  # noqa: N817

os.environ.setdefault("CUDA_DEVICE_MAX_CONNECTIONS", "1")


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
    parser.add_argument("--gpu", default=None, type=int)
    parser.add_argument("--backend", default="nccl")
    parser.add_argument("--amp", action="store_true")
    parser.add_argument("--steps", default=6, type=int)
    args = parser.parse_args()
    if "LOCAL_RANK" in os.environ:
        args.gpu = int(os.environ["LOCAL_RANK"])
    return args


def seed_everything(seed):
    random.seed(seed)
    torch.manual_seed(seed)
    torch.cuda.manual_seed(seed)
    torch.cuda.manual_seed_all(seed)
    torch.backends.cudnn.deterministic = True
    torch.backends.cudnn.benchmark = False


class Doubled(torch.autograd.Function):
    @staticmethod
    @amp.custom_fwd
    def forward(ctx, x):
        return x * 2

    @staticmethod
    @amp.custom_bwd
    def backward(ctx, gradient):
        return gradient * 2


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
        self.register_buffer("scale", torch.ones(1))

    def forward(self, x):
        if x.is_cuda:
            assert self.scale.is_cuda
        return self.layers(Doubled.apply(x) * self.scale)


def memory():
    torch.cuda.reset_peak_memory_stats()
    x = torch.ones(1024, 1024).cuda()
    numbers = [torch.cuda.memory_allocated(), torch.cuda.max_memory_allocated(), torch.cuda.memory_reserved()]
    free, total = torch.cuda.mem_get_info()
    del x
    torch.cuda.empty_cache()
    torch.cuda.ipc_collect()
    return all(number >= 0 for number in numbers) and 0 <= free <= total


def properties():
    count = torch.cuda.device_count()
    index = torch.cuda.current_device()
    seen = torch.cuda.get_device_properties(index)
    name = torch.cuda.get_device_name(0)
    torch.cuda.get_device_capability()
    return count > index >= 0 and seen.total_memory > 0 and bool(name)


def streams():
    side = torch.cuda.Stream()
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    x = torch.ones(64, 64, device="cuda")
    start.record()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        y = x @ x
    torch.cuda.current_stream().wait_stream(side)
    end.record()
    end.synchronize()
    torch.cuda.synchronize()
    with torch.cuda.device(0):
        y = y + 0
    return y.sum().item() == 64**3 and start.elapsed_time(end) >= 0


def random_states(device):
    state = torch.cuda.get_rng_state()
    first = torch.randn(4, device=device)
    torch.cuda.set_rng_state(state)
    same = torch.equal(first, torch.randn(4, device=device))
    generator = torch.Generator(device="cuda")
    generator.manual_seed(3)
    drawn = torch.rand(2, generator=generator, device="cuda")
    generator.manual_seed(3)
    return same and torch.equal(drawn, torch.rand(2, generator=generator, device="cuda"))


def moves(gpu):
    x = torch.ones(2)
    moved = [
        x.cuda(),
        x.cuda(gpu),
        x.cuda(0),
        x.cuda(device=gpu),
        x.cuda(non_blocking=True),
        x.to("cuda"),
        x.to("cuda:0"),
    ]
    moved += [x.to(torch.device("cuda", 0)), x.to(device=f"cuda:{0}"), torch.ones(2, device="cuda:%d" % 0)]  # noqa: UP031
    kinds = {tensor.device.type for tensor in moved}
    return len(kinds) == 1 and all(tensor.is_cuda == (tensor.device.type == "cuda") for tensor in moved)


def reloaded(model):
    file = io.BytesIO()
    torch.save(model.state_dict(), file)
    states = []
    for place in ("cuda", "cpu", lambda storage, location: storage.cuda(), {"cuda:0": "cuda:0"}):
        file.seek(0)
        states.append(torch.load(file, map_location=place)["scale"].sum().item())
    file.seek(0)
    states.append(torch.load(file, map_location=f"cuda:{0}")["scale"].sum().item())
    return states == [1.0] * 5


def train(args):
    device = torch.device(args.device if torch.cuda.is_available() else "cpu")
    if device.type == "cuda":
        torch.cuda.set_device(args.gpu or 0)
    model = Net().cuda(args.gpu)
    if "RANK" in os.environ:
        dist.init_process_group("nccl" if args.backend == "nccl" else args.backend)
        model = DDP(model, device_ids=[args.gpu or 0], output_device=args.gpu or 0)
    loss_of = nn.CrossEntropyLoss().cuda()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    scaler = GradScaler(enabled=args.amp)
    losses = []
    generator = torch.Generator()
    generator.manual_seed(1)
    for _ in range(args.steps):
        x = torch.randn(16, 8, generator=generator).cuda(args.gpu, non_blocking=True)
        y = torch.randint(3, (16,), generator=generator).to(device)
        optimizer.zero_grad()
        with autocast(enabled=args.amp):
            loss = loss_of(model(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        losses.append(round(loss.item(), 5))
    cuda.synchronize()
    if dist.is_available() and dist.is_initialized():
        total = torch.tensor([losses[-1]]).cuda()
        dist.all_reduce(total)
        dist.barrier()
        dist.destroy_process_group()
    return losses, model.module if isinstance(model, DDP) else model


def main():
    args = parse()
    seed_everything(7)
    losses, model = train(args)
    checks = {"memory": memory(), "moves": moves(args.gpu), "reloaded": reloaded(model)}
    if torch.cuda.is_available():
        checks.update(properties=properties(), streams=streams(), random=random_states("cuda"))
    print(json.dumps({"device": next(model.parameters()).device.type, "losses": losses, **checks}))


if __name__ == "__main__":
    main()
