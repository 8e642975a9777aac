"""The affinity forms against the plain ones, taken in turns in one run: python benchmarks/affinity.py [cpu|cuda|...]

The ratios of one device say nothing of another's.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import torch  # noqa: E402
from tests.perf.affinity.checks.plain import random_boxes, stacked_iou, transposed_shuffle  # noqa: E402
from torch import Tensor, nn  # noqa: E402

from torchferry.perf import affinity  # noqa: E402

Action = Callable[[], object]
Case = tuple[str, Action, Action, int]  # what is computed, plain, ours, calls for a measurement
ROUNDS = 9


def main() -> None:
    """Print one table."""
    device = sys.argv[1] if len(sys.argv) > 1 else "cpu"
    torch.manual_seed(0)
    torch.set_num_threads(1)
    clock = "processor time, 1 thread" if device == "cpu" else "wall time"
    print(f"{time.strftime('%Y-%m-%d')}, torch {torch.__version__}, {device}, {clock}; taken in turns")
    print("what is computed                                 plain ms   affinity ms   ratio (median of pairs)")
    for case in (*shuffles(device), *boxes(device), *losses(device), *optimizers(device), *loaders(device)):
        compare(device, *case)


def compare(device: str, name: str, plain: Action, ours: Action, repeats: int) -> None:
    """One line."""
    times = []
    for around in range(ROUNDS + 1):
        order = (plain, ours) if around % 2 else (ours, plain)
        found = {action: seconds(device, action, repeats) for action in order}
        times.append((found[plain], found[ours]))
    del times[0]  # the first warms up
    ratio = statistics.median(after / before for before, after in times)
    before, after = (statistics.median(column) * 1e3 for column in zip(*times, strict=True))
    print(f"{name:<47} {before:10.3f} {after:13.3f}   {ratio:6.2f}")


def seconds(device: str, action: Action, repeats: int) -> float:
    """How long one call takes, with all that it has the device do."""
    clock = time.process_time if device == "cpu" else time.perf_counter
    wait(device)
    start = clock()
    for _ in range(repeats):
        action()
    wait(device)
    return (clock() - start) / repeats


def wait(device: str) -> None:
    """Until the device has done everything."""
    if device != "cpu":
        getattr(torch, device).synchronize()


def shuffles(device: str) -> Iterator[Case]:
    """At the size of ShuffleNet's second stage."""
    halves = [torch.randn(16, 58, 28, 28, device=device).requires_grad_() for _ in range(2)]
    joined = affinity.ChannelShuffle(116, 2).to(device)
    yield (
        "cat, shuffle, chunk; forward and backward",
        lambda: backward(transposed_shuffle(torch.cat(halves, 1), 2).chunk(2, 1), halves),
        lambda: backward(joined(*halves), halves),
        10,
    )
    image = [torch.randn(16, 116, 28, 28, device=device).requires_grad_()]
    alone = affinity.ChannelShuffle(116, 2, split_shuffle=False).to(device)
    yield (
        "shuffle alone; forward and backward",
        lambda: backward([transposed_shuffle(image[0], 2)], image),
        lambda: backward([alone(image[0])], image),
        10,
    )


def backward(results: Iterable[Tensor], inputs: list[Tensor]) -> object:
    """Gradients that a convolution can use: contiguous."""
    found = list(results)
    gradients = torch.autograd.grad(found, inputs, [torch.ones_like(item) for item in found])
    return [gradient.contiguous() for gradient in gradients]


def boxes(device: str) -> Iterator[Case]:
    """Detection; torchvision's compiled nms may be missing."""
    generator = torch.Generator().manual_seed(0)
    many, few = (random_boxes(count, generator).to(device) for count in (2000, 100))
    yield (
        "overlaps of 2000 boxes with 100",
        lambda: stacked_iou(many, few),
        lambda: affinity.pairwise_iou(many, few),
        10,
    )
    if not hasattr(torch.ops.torchvision, "nms"):
        return
    from torchvision.ops import batched_nms, clip_boxes_to_image

    regions = random_boxes(1000, generator).to(device)
    scores = torch.rand(1000, 81, generator=generator).pow(4).to(device)

    def by_torchvision() -> Tensor:
        region, label = (scores[:, :-1] > 0.5).nonzero().unbind(1)
        kept: Tensor = batched_nms(
            clip_boxes_to_image(regions, (80, 90))[region], scores[region, label], label, 0.5
        )
        return kept[:100]

    yield (
        "detections among 1000 regions, 80 classes",
        by_torchvision,
        lambda: affinity.fast_rcnn_inference_single_image(regions, scores, (80, 90), 0.5, 0.5, 100),
        3,
    )


def losses(device: str) -> Iterator[Case]:
    """The same labels in both types."""
    scores, labels = torch.randn(256, 1000, device=device), torch.randint(1000, (256,), device=device)
    short = labels.int()
    yield (
        "cross entropy, 256 x 1000, labels int64 / int32",
        lambda: nn.functional.cross_entropy(scores, labels),
        lambda: affinity.cross_entropy(scores, short),
        50,
    )


def optimizers(device: str) -> Iterator[Case]:
    """As torch makes them when nothing is said, and the form that is chosen."""
    for name in ("SGD", "AdamW"):
        plain = getattr(torch.optim, name)(many_parameters(device), lr=0.01)
        ours = affinity.fused_optimizer(name, many_parameters(device), lr=0.01)
        yield f"a step of {affinity.fused_form(ours)}", plain.step, ours.step, 20


def many_parameters(device: str) -> list[Any]:
    """160 of them, with gradients, about as a small ResNet has them."""
    shapes = [(64, 64), (64,)] * 80
    params = [nn.Parameter(torch.randn(shape, device=device)) for shape in shapes]
    for param in params:
        param.grad = torch.randn_like(param)
    return params


def loaders(device: str) -> Iterator[Case]:
    """Batches that are copied while the step before them runs; on the CPU there is nothing to copy."""
    if device == "cpu":
        return
    batches = [torch.randint(0, 256, (64, 3, 224, 224), dtype=torch.uint8) for _ in range(20)]
    model = nn.Sequential(nn.Conv2d(3, 64, 7, 2), nn.ReLU(), nn.Conv2d(64, 64, 3)).to(device)
    scale = {"mean": (0.5, 0.5, 0.5), "std": (0.25, 0.25, 0.25)}

    def plain() -> None:
        for batch in batches:
            model(batch.to(device).float().div_(255).sub_(0.5).div_(0.25)).sum().backward()

    def ours() -> None:
        for batch in affinity.PreLoader(batches, device, **scale):  # type: ignore[arg-type]
            model(batch).sum().backward()

    yield "20 batches of 64 images, copied and trained with", plain, ours, 1


if __name__ == "__main__":
    main()
