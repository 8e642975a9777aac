"""Sorts pictures of textures: a small program for one GPU, in which one thing can be made slow.

--plant puts one bottleneck into it: a loader that unpacks pictures byte by byte, values that are fetched one at a time,
channels that are shuffled by copies, an operator that some accelerators lack, an optimizer that updates one parameter
after the other, or pictures of another size in each step. `none` has nothing of them.
"""

import argparse
import itertools

import torch
from torch import nn
from torch.utils.data import BatchSampler, DataLoader, Dataset, RandomSampler

BOTTLENECKS = ("none", "slow_loader", "item", "noncontiguous", "fallback", "unfused", "dynamic")
KINDS, SIZE, WIDTH, BATCH = 10, 32, 32, 32
# Blocks, and the stride before them: what is planted must weigh more than the rest.
SIZES = {"item": (1, 8), "slow_loader": (1, 8), "unfused": (24, 8)}


class Textures(Dataset):
    """Waves of one direction for each kind, with noise."""

    def __init__(self, count):
        self.kinds = torch.randint(KINDS, (count,))
        across, down = torch.meshgrid(torch.arange(SIZE), torch.arange(SIZE), indexing="xy")
        angles = self.kinds.view(-1, 1, 1) * (torch.pi / KINDS)
        waves = torch.sin((angles.cos() * across + angles.sin() * down) * 0.8)
        self.pictures = waves.unsqueeze(1).repeat(1, 3, 1, 1) + 0.3 * torch.randn(count, 3, SIZE, SIZE)

    def __len__(self):
        return len(self.kinds)

    def __getitem__(self, chosen):
        return self.pictures[chosen], self.kinds[chosen]


class PackedTextures(Textures):
    """The same as bytes, which are unpacked one by one."""

    def __init__(self, count):
        super().__init__(count)
        self.packed = [bytes(picture) for picture in ((self.pictures + 3) * 40).byte().flatten(1).tolist()]

    def __getitem__(self, chosen):
        # the camera's left side is darker
        lighter = [
            1 + 0.1 * (place % SIZE) / SIZE + 0.01 * (place // SIZE % 3) for place in range(3 * SIZE * SIZE)
        ]
        values = [
            round((value / 40 - 3) * factor, 3)
            for value, factor in zip(self.packed[chosen], lighter, strict=True)
        ]
        return torch.tensor(values).view(3, SIZE, SIZE), self.kinds[chosen]


def shuffle_channels(x, groups):
    batch, channels, height, width = x.shape
    x = x.view(batch, groups, channels // groups, height, width).transpose(1, 2).contiguous()
    return x.view(batch, channels, height, width)


def log_cumulated(x):
    """A soft running maximum along the rows."""
    return torch.logcumsumexp(x, dim=-1) * 0.1


class Block(nn.Module):
    def __init__(self, plant):
        super().__init__()
        self.plant = plant
        self.mix = nn.Conv2d(WIDTH, WIDTH, 1, bias=False)
        self.norm = nn.BatchNorm2d(WIDTH)
        self.spread = nn.Conv2d(WIDTH, WIDTH, 3, padding=1, groups=WIDTH, bias=False)

    def forward(self, x):
        y = torch.relu(self.norm(self.mix(x)))
        if self.plant == "noncontiguous":
            for groups in (2, 4, 8, 16, 8, 4, 2):
                y = shuffle_channels(y, groups)
        else:
            y = self.spread(y)
        if self.plant == "fallback":
            y = y + log_cumulated(y)
        return x + y


class Sorter(nn.Module):
    def __init__(self, plant):
        super().__init__()
        depth, stride = SIZES.get(plant, (6, 2))
        self.first = nn.Conv2d(3, WIDTH, 3, stride=stride, padding=1)
        self.body = nn.Sequential(*(Block(plant) for _ in range(depth)))
        self.last = nn.Linear(WIDTH, KINDS)

    def forward(self, x):
        return self.last(self.body(self.first(x)).mean((2, 3)))


def batches(plant):
    """Without end."""
    if plant == "slow_loader":
        torch.set_num_threads(1)  # on a busy machine threads wait for each other longer than for data
        loader = DataLoader(PackedTextures(256), batch_size=BATCH, shuffle=True)
    else:
        textures = Textures(256)
        chosen = BatchSampler(RandomSampler(textures), BATCH, drop_last=True)  # a batch is one look-up
        loader = DataLoader(textures, sampler=chosen, batch_size=None)
    return itertools.chain.from_iterable(itertools.repeat(loader))


def resized(pictures, step):
    """To a size that no step before has had."""
    side = SIZE - 12 + 2 * step
    return nn.functional.interpolate(pictures, size=(side, side), mode="nearest")


def count_one_by_one(answers, kinds):
    """How many answers are right; asks the device for each of them."""
    right = 0
    for answer, kind in zip(answers, kinds, strict=True):
        best = max(range(KINDS), key=lambda number: answer[number].item())
        right += best == kind.item()
    return right


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--plant", choices=BOTTLENECKS, default="none")
    parser.add_argument("--steps", type=int, default=20)
    args = parser.parse_args()

    torch.manual_seed(0)
    device = torch.device("cuda")
    model = Sorter(args.plant).to(device)
    fused = args.plant != "unfused"
    optimizer = torch.optim.RMSprop(model.parameters(), 1e-3, momentum=0.9, centered=True, foreach=fused)
    right = 0
    for step, (pictures, kinds) in enumerate(itertools.islice(batches(args.plant), args.steps), 1):
        pictures, kinds = pictures.to(device), kinds.to(device)
        if args.plant == "dynamic":
            pictures = resized(pictures, step)
        answers = model(pictures)
        loss = nn.functional.cross_entropy(answers, kinds)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if args.plant == "item":
            right += count_one_by_one(answers.detach(), kinds)
    print(f"loss after {args.steps} steps: {loss.item():.3f}")
    if args.plant == "item":
        print(f"right: {right} of {args.steps * BATCH}")


if __name__ == "__main__":
    main()
