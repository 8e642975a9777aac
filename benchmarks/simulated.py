"""The simulated device against the plain CPU: training steps and single operators, taken in turns in one run.

With --emulated the vendor's own plugin on its emulated toolkit takes the simulated device's place.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "examples" / "imagenet"))

from torchferry import emulate, sim  # noqa: E402

KIND = "emulated" if "--emulated" in sys.argv[1:] else "simulated"
(emulate if KIND == "emulated" else sim).activate("ascend", devices=1)

import torch  # noqa: E402
from resnet import resnet50  # noqa: E402
from torch import Tensor, nn  # noqa: E402

DEVICE = "npu"
MICROSECONDS = 1e6


def main() -> None:
    """Print the table."""
    threads = torch.get_num_threads()
    print(
        f"{time.strftime('%Y-%m-%d')}, torch {torch.__version__}, {threads} threads; wall time, pairs taken in turns"
    )
    print(f"training step                    CPU ms   {KIND:>9} ms   ratio (median of pairs)")
    compare("ResNet-50, batch 8 x 224 x 224", resnet50, torch.randn(8, 3, 224, 224), pairs=9)
    compare("MLP 256-256-256-10, batch 128", make_mlp, torch.randn(128, 256), pairs=600)
    compare("transformer layer 8 x 64 x 128", make_transformer, torch.randn(8, 64, 128), pairs=100)
    compare("LSTM 2 x 128, 20 steps", make_lstm, torch.randn(20, 16, 64), pairs=100)
    print("\nfloat16 by autocast on the device   float32 ms   float16 ms   ratio (median of pairs)")
    compare_half("ResNet-50, batch 4 x 64 x 64", resnet50, torch.randn(4, 3, 64, 64), pairs=9)
    compare_half("MLP 256-256-256-10, batch 128", make_mlp, torch.randn(128, 256), pairs=100)
    compare_half("transformer layer 8 x 64 x 128", make_transformer, torch.randn(8, 64, 128), pairs=40)
    compare_half("LSTM 2 x 128, 20 steps", make_lstm, torch.randn(20, 16, 64), pairs=20)
    print(f"\noperator on 16 numbers            CPU us   {KIND:>9} us   extra us")
    with torch.no_grad():
        for name, run in OPERATORS.items():
            compare_operator(name, run)


def compare(name: str, make: Callable[[], nn.Module], x: Tensor, pairs: int) -> None:
    """One line: a step on the CPU and one on the device, again and again."""
    compare_steps(name, [training_step(device, make, x) for device in ("cpu", DEVICE)], pairs)


def compare_half(name: str, make: Callable[[], nn.Module], x: Tensor, pairs: int) -> None:
    """One line: a step in single precision and one in half precision, both on the device."""
    compare_steps(name, [training_step(DEVICE, make, x, half) for half in (False, True)], pairs)


def compare_steps(name: str, steps: list[Callable[[], None]], pairs: int) -> None:
    """One line: the second against the first."""
    for step in steps * 3:
        step()
    times = [[seconds(step) for step in steps] for _ in range(pairs)]
    first, second = (statistics.median(column) for column in zip(*times, strict=True))
    ratio = statistics.median(pair[1] / pair[0] for pair in times)
    print(f"{name:<30} {first * 1e3:8.2f} {second * 1e3:12.2f}   {ratio:8.3f}")


def training_step(
    device: str, make: Callable[[], nn.Module], x: Tensor, half: bool = False
) -> Callable[[], None]:
    """Forward, backward and SGD of a model on a device; in half precision by autocast."""
    torch.manual_seed(0)
    model, x = make().to(device), x.to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, foreach=False)

    def step() -> None:
        optimizer.zero_grad()
        with torch.autocast(device, dtype=torch.float16, enabled=half):
            y = model(x)
            loss = (y[0] if isinstance(y, tuple) else y).float().pow(2).mean()
        loss.backward()
        optimizer.step()

    return step


def make_mlp() -> nn.Module:
    """About one millisecond a step."""
    return nn.Sequential(nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10))


def make_transformer() -> nn.Module:
    """One encoder layer."""
    return nn.TransformerEncoderLayer(128, 4, 256, batch_first=True)


def make_lstm() -> nn.Module:
    """Two layers."""
    return nn.LSTM(64, 128, 2)


OPERATORS: dict[str, Callable[[Tensor], Tensor]] = {
    "add": lambda x: x + x,
    "mul_ (in place)": lambda x: x.mul_(1.0),
    "relu": torch.relu,
    "sum": lambda x: x.sum(),
    "mm 4x4": lambda x: x.view(4, 4).mm(x.view(4, 4)),
    "cat of two": lambda x: torch.cat([x, x]),
    "view": lambda x: x.view(4, 4),
    "clone": lambda x: x.clone(),
    "empty_like": torch.empty_like,
}


def compare_operator(name: str, run: Callable[[Tensor], Tensor], calls: int = 5000, rounds: int = 15) -> None:
    """One line: the quickest of several rounds on either, in turns."""
    tensors = [torch.ones(16, device=device) for device in ("cpu", DEVICE)]
    best = [float("inf"), float("inf")]
    for _ in range(rounds):
        for which, x in enumerate(tensors):
            best[which] = min(best[which], seconds(lambda x=x: repeat(run, x, calls)) / calls)
    cpu, simulated = (time_each * MICROSECONDS for time_each in best)
    print(f"{name:<30} {cpu:8.2f} {simulated:12.2f}   {simulated - cpu:8.2f}")


def repeat(run: Callable[[Tensor], Tensor], x: Tensor, calls: int) -> None:
    """Call again and again."""
    for _ in range(calls):
        run(x)


def seconds(run: Callable[[], object]) -> float:
    """How long a call takes, what it has left to the device included."""
    start = time.perf_counter()
    run()
    torch.accelerator.synchronize()
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
