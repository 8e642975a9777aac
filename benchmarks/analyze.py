"""What analyzing costs: `ferry analyze` of a trace of about 100 MB against `json.load` of the same file, in one run."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import torch
    from torch import nn

ROUNDS = 3
BYTES = 100_000_000
MEGA = 1e6
FIRST_STEPS = 2


class Cost(NamedTuple):
    """Of one process."""

    seconds: float  # of the processors
    peak: int  # bytes


def main() -> None:
    """Print the tables."""
    print(
        f"{time.strftime('%Y-%m-%d')}, torch {importlib.metadata.version('torch')}, {os.cpu_count()} cores; processor time of whole "
        f"processes, medians of {ROUNDS} rounds in turns"
    )
    with tempfile.TemporaryDirectory() as folder:
        for name, stacks in (("with Python's frames", True), ("without them", False)):
            trace = Path(folder) / "trace.json"
            # by a process of its own: the memory of this one would count as that of its children
            words = [sys.executable, __file__, str(trace), *(["stacks"] if stacks else [])]
            subprocess.run(words, check=True, stderr=subprocess.DEVNULL)
            measure(name, trace)


def write_trace(path: Path, stacks: bool) -> None:
    """A language model's training on the CPU: as many steps as it takes."""
    import torch
    from torch import nn

    layer = nn.TransformerEncoderLayer(64, 4, 128, batch_first=True)
    model = nn.Sequential(nn.TransformerEncoder(layer, 6, enable_nested_tensor=False), nn.Linear(64, 64))
    optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
    record(path, model, optimizer, FIRST_STEPS, stacks)
    record(path, model, optimizer, max(1, FIRST_STEPS * BYTES // path.stat().st_size), stacks)


def record(path: Path, model: nn.Module, optimizer: torch.optim.Optimizer, steps: int, stacks: bool) -> None:
    """Some steps under the profiler."""
    import torch
    from torch.profiler import ProfilerActivity, profile

    with profile(
        activities=[ProfilerActivity.CPU], record_shapes=True, profile_memory=True, with_stack=stacks
    ) as profiler:
        for _ in range(steps):
            loss = model(torch.randn(4, 16, 64)).square().mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            profiler.step()
    profiler.export_chrome_trace(str(path))


def measure(name: str, trace: Path) -> None:
    """One table."""
    size = trace.stat().st_size
    commands = {"json.load": [sys.executable, "-c", f"import json; json.load(open({str(trace)!r}))"]}
    for form in ("json", "html"):
        words = ["analyze", "--format", form, str(trace)]
        code = f"import sys; from torchferry.cli.main import main; sys.exit(main({words!r}))"
        commands[f"ferry analyze --format {form}"] = [sys.executable, "-c", code]
    commands |= others(trace)
    print(f"\ntrace {name}, {size / MEGA:.0f} MB          seconds   over json.load   peak memory over file")
    costs = in_turns(commands)
    for label, cost in costs.items():
        # it ends with 0 as well where it refuses a trace without a device's kernels, after it has read it
        is_refused = label.startswith("msprof") and not any(trace.parent.rglob("performance_comparison*"))
        print(
            f"{label:<40} {cost.seconds:9.2f} {cost.seconds / costs['json.load'].seconds:16.2f} {cost.peak / size:23.2f}"
            + ("   (without a result)" if is_refused else "")
        )


def others(trace: Path) -> dict[str, list[str]]:
    """Other tools, where they are installed."""
    found: dict[str, list[str]] = {}
    if importlib.util.find_spec("hta"):
        code = (
            f"from hta.trace_analysis import TraceAnalysis; TraceAnalysis(trace_files={{0: {str(trace)!r}}})"
        )
        found["HTA, loading alone"] = [sys.executable, "-c", code]
    if importlib.util.find_spec("msprof_analyze"):
        tool = str(Path(sys.executable).with_name("msprof-analyze"))
        found["msprof-analyze compare"] = [
            tool,
            "compare",
            "-d",
            str(trace),
            "-bp",
            str(trace),
            "-o",
            str(trace.parent),
        ]
    if len(found) < 2:
        print(
            "not installed, so not measured: "
            + ", ".join(sorted({"hta", "msprof_analyze"} - set(names(found))))
        )
    return found


def names(found: dict[str, list[str]]) -> list[str]:
    """The modules that were found."""
    return ["hta" if label.startswith("HTA") else "msprof_analyze" for label in found]


def in_turns(commands: dict[str, list[str]]) -> dict[str, Cost]:
    """Medians."""
    costs: dict[str, list[Cost]] = {label: [] for label in commands}
    for _ in range(ROUNDS):
        for label, command in commands.items():
            costs[label].append(cost_of(label, command))
    return {
        label: Cost(statistics.median(cost.seconds for cost in each), max(cost.peak for cost in each))
        for label, each in costs.items()
    }


def cost_of(label: str, command: list[str]) -> Cost:
    """Run it to its end."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        print(f"{label} ended with exit code {process.returncode}")
    return Cost(used.ru_utime + used.ru_stime, peak_of(used))


def peak_of(used: resource.struct_rusage) -> int:
    """Bytes; the kernel counts in kilobytes."""
    return int(used.ru_maxrss) * (1 if sys.platform == "darwin" else 1024)


if __name__ == "__main__":
    write_trace(Path(sys.argv[1]), "stacks" in sys.argv[2:]) if sys.argv[1:] else main()
