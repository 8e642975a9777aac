"""What watches a program takes everything back: the process is as it was, also where the watching fails half way."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import torch
from torch.utils import _python_dispatch

from tests.forking import run_forked
from torchferry.accuracy.model import Kept
from torchferry.accuracy.record.settings import OverflowSettings, RecordSettings, WatchSettings
from torchferry.launch.parts import PartSettings
from torchferry.observe import where
from torchferry.observe.patching import Patches
from torchferry.perf.collect.settings import ProfileSettings
from torchferry.readiness.capture.mode import CapturingMode
from torchferry.readiness.capture.settings import CaptureSettings

TRAINING = """\
import json, os, signal, sys, threading, torch
from torch.optim import optimizer as optimizers
from torch.utils import _python_dispatch
from torchferry.launch.autoload import autoload

OWNERS = {
    torch.nn.Module: ["__call__"], torch.optim.Optimizer: ["__init__", "profile_hook_step"],
    threading.Thread: ["start"], torch.jit: ["trace", "trace_module"], os: ["_exit"],
    torch.utils.data.DataLoader: ["__iter__"], torch.utils.data.dataloader._BaseDataLoaderIter: ["__next__"],
    torch.amp.GradScaler: ["step", "scale"], torch.autograd: ["backward"], torch._VF: ["lstm", "gru_cell"],
    torch.nn.functional: ["one_hot"], torch.amp.autocast_mode.autocast: ["__enter__"],
    torch.autograd.profiler: ["_prepare_profiler", "_enable_profiler", "_disable_profiler"],
    optimizers: ["_get_foreach_kernels_supported_devices"],
}


def state():
    found = {f"{owner.__name__}.{name}": vars(owner).get(name) for owner, names in OWNERS.items() for name in names}
    found["SIGTERM"] = signal.getsignal(signal.SIGTERM)
    found["modes"] = _python_dispatch._get_current_dispatch_mode_stack()
    found["module hooks"] = len(torch.nn.modules.module._global_forward_hooks)
    found["module pre-hooks"] = len(torch.nn.modules.module._global_forward_pre_hooks)
    found["excepthook"] = sys.excepthook
    return found


def step():
    optimizer.zero_grad()
    model(torch.ones(4, 3)).sum().backward()
    optimizer.step()


def changed():
    return sorted(name for name, value in state().items() if value is not before[name] and value != before[name])


before = state()
autoload()
model = torch.nn.Linear(3, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
while_watched = changed()
"""
FIVE_STEPS = "for _ in range(5):\n    step()\n"
TELL = "print(json.dumps([while_watched, changed()]))\n"


def watchers(folder: Path) -> dict[str, PartSettings]:
    """What asks for each, while the program goes on afterwards."""
    output, told = str(folder / "out.h5"), str(folder)
    record = RecordSettings(output, told, kept=Kept.STATISTICS, keep_going=True)
    overflow = OverflowSettings(output, told, keep_going=True)
    watch = WatchSettings(output, told, keep_going=True, steps=2)
    return {
        "record": record,
        "overflow": overflow,
        "watch": watch,
        "profile": ProfileSettings(told, 2, 3, keep_running=True),
        "ops": CaptureSettings(told, "train.py", 1),
    }


def told_by(program: str, folder: Path, watcher: str) -> tuple[list[str], list[str]]:
    """What is changed in the process while it is watched, and at the program's end."""
    asked = watchers(folder)[watcher]
    ask = f"import os\nos.environ[{asked.variable!r}] = {asked.encode()!r}\n"
    ended = run_forked(f"{ask}{TRAINING}{program}", os.environ, folder)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    before, after = json.loads(ended.stdout.splitlines()[-1])
    return before, after


@pytest.mark.parametrize("watcher", ["record", "overflow", "watch", "profile"])
def test_a_program_that_goes_on_is_as_it_was(watcher: str, tmp_path: Path) -> None:
    while_watched, afterwards = told_by(FIVE_STEPS + TELL, tmp_path, watcher)
    assert "Optimizer.__init__" in while_watched
    assert afterwards == []


def test_a_capture_that_is_over_leaves_the_process_as_it_was(tmp_path: Path) -> None:
    caught = f"try:\n    step()\nexcept SystemExit:\n    pass\n{TELL}"
    while_watched, afterwards = told_by(caught, tmp_path, "ops")
    assert {"modes", "Thread.start", "os._exit"} <= set(while_watched)
    assert afterwards == []


def test_a_capture_that_cannot_begin_leaves_nothing(tmp_path: Path) -> None:
    broken = (
        "from torchferry.readiness.capture import program\n"
        "def keep_out_of_tracing(*_): raise OSError\n"
        "program.keep_out_of_tracing = keep_out_of_tracing\n"
        "before = state()\n"
        "try:\n"
        f"    program.ProgramCapture(program.CaptureSettings({str(tmp_path)!r}, 'train.py', 1)).begin()\n"
        "except OSError:\n"
        "    pass\n"
    )
    prelude = TRAINING.replace("before = state()\nautoload()\n", broken)
    ended = run_forked(f"{prelude}{TELL}", os.environ, tmp_path)
    assert json.loads(ended.stdout) == [[], []], ended.stderr


def test_a_step_that_fails_leaves_no_mode_on() -> None:
    mode = CapturingMode()
    with pytest.raises(RuntimeError, match="shapes"), mode.switched_on():
        torch.ones(2, 3) @ torch.ones(2, 3)
    assert _python_dispatch._get_current_dispatch_mode() is None
    assert mode.where not in where._watching


class Owner:
    """What is patched."""

    plain = "as it was"


def test_an_attribute_that_was_not_there_is_gone_again() -> None:
    patches = Patches()
    patches.replace(Owner, "plain", "ours")
    patches.replace(Owner, "added", "ours")
    assert (Owner.plain, vars(Owner)["added"]) == ("ours", "ours")
    patches.take_back()
    assert Owner.plain == "as it was" and "added" not in vars(Owner)


def test_what_the_program_has_put_around_ours_stays() -> None:
    patches = Patches()
    patches.replace(Owner, "plain", "ours")
    Owner.plain = "theirs"
    patches.take_back()
    assert Owner.plain == "theirs"
    Owner.plain = "as it was"
