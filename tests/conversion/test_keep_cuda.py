"""--keep-cuda: the converted program runs on CUDA, on the vendor's device and on the CPU, and one module decides."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conversion.rewriting import VENDORS, expression, run, said_of
from tests.forking import run_forked
from torchferry.cli.main import main
from torchferry.conversion.targets import helper_source, is_helper, serves
from torchferry.vendors.registry import get_vendor

TO = "ascend+cuda"
TRAIN = "import torch\n\nmodel = torch.nn.Linear(2, 2).cuda()\n"


@pytest.mark.parametrize(
    "source",
    [
        "x.to('cpu')",
        "ferry_device.synchronize()",
        "x.to(ferry_device.DEVICE_TYPE)",
        "x = x.to(ferry_device.place(0), non_blocking=True)",
        "log('cuda is fast')",
        "model = torch.nn.parallel.DistributedDataParallel(model, device_ids=ferry_device.unless_cpu([0]))",
        "model = torch.nn.parallel.DistributedDataParallel(model, device_ids=None)",
        "model = torch.nn.parallel.DistributedDataParallel(model, device_ids=[0] if use_cuda else None)",
    ],
)
def test_left_as_it_is(source: str) -> None:
    assert expression(source, TO) == source


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x.cuda()", "x.to(ferry_device.DEVICE_TYPE)"),
        ("x.cuda(gpu)", "x.to(ferry_device.place(gpu))"),
        ("x.cuda(args.gpu, non_blocking=True)", "x.to(ferry_device.place(args.gpu), non_blocking=True)"),
        ("x.cuda(0, True)", "x.to(ferry_device.place(0), non_blocking=True)"),
        ("x.cuda(device=gpu)", "x.to(device=ferry_device.place(gpu))"),
        ("x.cuda('cuda:1')", "x.to(f'{ferry_device.DEVICE_TYPE}:1')"),
        ("x.cuda(torch.cuda.current_device())", "x.to(ferry_device.place(ferry_device.current_device()))"),
        ("d = torch.device('cuda')", "d = torch.device(ferry_device.DEVICE_TYPE)"),
        ("d = torch.device(f'cuda:{i}')", "d = torch.device(f'{ferry_device.DEVICE_TYPE}:{i}')"),
        ("ok = device.type == 'cuda'", "ok = device.type != 'cpu'"),
        ("ok = x.is_cuda", 'ok = (x.device.type != "cpu")'),
        ("torch.cuda.synchronize()", "ferry_device.synchronize()"),
        ("torch.cuda.memory.memory_allocated(0)", "ferry_device.memory_allocated(0)"),
        ("torch.cuda.random.manual_seed_all(1)", "ferry_device.manual_seed_all(1)"),
        ("ok = torch.cuda.is_available()", "ok = ferry_device.is_available()"),
        ("with torch.cuda.amp.autocast(): pass", "with ferry_device.autocast(): pass"),
        ("scaler = torch.cuda.amp.GradScaler()", "scaler = ferry_device.GradScaler()"),
        ("with torch.autocast('cuda'): pass", "with torch.autocast(ferry_device.DEVICE_TYPE): pass"),
        ("t = torch.cuda.FloatTensor(2)", "t = ferry_device.FloatTensor(2)"),
        ("g = torch.cuda.CUDAGraph", "g = ferry_device.CUDAGraph"),
        ("m = torch.cuda", "m = ferry_device"),
        ("m = getattr(torch, 'cuda')", "m = getattr(torch, ferry_device.DEVICE_TYPE)"),
        ("torch.cuda.ipc_collect()", "ferry_device.ipc_collect()"),
        (
            "torch.distributed.init_process_group('nccl')",
            "torch.distributed.init_process_group(ferry_device.DIST_BACKEND)",
        ),
        (
            "parser.add_argument('--device', default='cuda')",
            "parser.add_argument('--device', default=ferry_device.DEVICE_TYPE)",
        ),
        (
            "m = torch.nn.parallel.DistributedDataParallel(m, device_ids=[gpu])",
            "m = torch.nn.parallel.DistributedDataParallel(m, device_ids=ferry_device.unless_cpu([gpu]))",
        ),
        (
            "s = torch.load(path, map_location=f'cuda:{rank}')",
            "s = torch.load(path, map_location=f'{ferry_device.DEVICE_TYPE}:{rank}'"
            ' if ferry_device.DEVICE_TYPE != "cpu" else "cpu")',
        ),
    ],
)
def test_goes_through_the_module(before: str, after: str) -> None:
    assert expression(before, TO) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "from torch.cuda.amp import GradScaler, autocast\n",
            "from ferry_device import GradScaler, autocast\n",
        ),
        ("from torch.cuda import amp\namp.autocast()\n", "import ferry_device as amp\namp.autocast()\n"),
        ("import torch.cuda.amp as amp\n", "import ferry_device as amp\n"),
        (
            "from torch import cuda, nn\ncuda.empty_cache()\n",
            "import ferry_device as cuda\nfrom torch import nn\ncuda.empty_cache()\n",
        ),
        (
            "import torch.cuda\ntorch.cuda.empty_cache()\n",
            "import torch.cuda\nimport ferry_device\nferry_device.empty_cache()\n",
        ),
    ],
)
def test_imports(before: str, after: str) -> None:
    assert run(before, TO).new_text == after


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ("torch.cuda.nccl.version()", "unsupported"),
        ("torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA])", "todo"),
        ("move = torch.Tensor.cuda", "unsupported"),
        ("from apex.optimizers import FusedAdam", "todo"),
        ("from torch.cuda import *", "todo"),
    ],
)
def test_what_only_cuda_has_is_reported_and_still_works_there(source: str, kind: str) -> None:
    assert expression(source, TO) == source
    assert kind in [item[1] for item in said_of(source, TO)]


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ("import os\nos.environ['CUDA_VISIBLE_DEVICES'] = '0'\n", "info"),
        ("import os\ndef f():\n    os.environ['CUDA_VISIBLE_DEVICES'] = '0'\n", "todo"),
    ],
)
def test_visible_devices_are_handed_on_if_set_early(source: str, kind: str) -> None:
    (finding,) = run(source, TO).findings
    assert finding.kind.value == kind
    assert "ASCEND_RT_VISIBLE_DEVICES" in finding.message.en


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "import os\nimport torch\nimport sys\nx.cuda()\n",
            "import os\nimport torch\nimport sys\nimport ferry_device\n",
        ),
        (
            '"""Settings."""\nimport os\n\nDEVICE = "cuda"\n',
            '"""Settings."""\nimport os\nimport ferry_device\n',
        ),
        ('device = "cuda"\n', "import ferry_device\ndevice ="),
        ("def f(device='cuda'):\n    import torch\n", "import ferry_device\ndef f("),
    ],
)
def test_the_import_stands_before_all_uses(before: str, after: str) -> None:
    assert (run(before, TO).new_text or "").startswith(after)


@pytest.mark.parametrize("name", VENDORS)
def test_the_module_is_sound_for_every_vendor(name: str) -> None:
    vendor = get_vendor(name)
    data = helper_source(vendor)
    compile(data, "ferry_device.py", "exec")
    assert b"@" not in data.replace(b"@functools", b"")
    assert max(map(len, data.decode().splitlines())) <= 110
    assert serves(data, vendor)
    assert (f"import {vendor.plugin} " in data.decode()) is bool(vendor.plugin)
    assert not any(serves(data, get_vendor(other)) for other in VENDORS if other != name)


def test_no_module_of_somebody_else_is_taken_for_it() -> None:
    assert not is_helper(b'"""Which device this program runs on: mine."""\n')


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    (root / "pkg" / "ops").mkdir(parents=True)
    (root / "setup.py").write_text("")
    (root / "pkg" / "__init__.py").write_text("")
    (root / "pkg" / "ops" / "__init__.py").write_text("")
    (root / "pkg" / "ops" / "nms.py").write_text(
        "from torch.cuda.amp import autocast\nfrom . import x\ny.cuda()\n"
    )
    (root / "pkg" / "model.py").write_text(
        "from torch.cuda.amp import autocast\nfrom torch import cuda\ny.cuda()\n"
    )
    (root / "pkg" / "alias.py").write_text("import torch.cuda.amp as amp\nfrom . import x\n")
    (root / "train.py").write_text("import torch\nfrom pkg import model\nx.cuda()\n")
    return root


def ferry(*arguments: object) -> int:
    return main(
        [str(argument) for argument in ("convert", *arguments, "--to", "ascend", "--keep-cuda", "-q")]
    )


def test_a_package(project: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert ferry(project, "-o", out) == 0
    assert is_helper((out / "pkg" / "ferry_device.py").read_bytes())
    assert not (out / "ferry_device.py").exists()
    assert (out / "pkg" / "ops" / "nms.py").read_text() == (
        "from ..ferry_device import autocast\nfrom . import x\nfrom .. import ferry_device\n"
        "y.to(ferry_device.DEVICE_TYPE)\n"
    )
    assert (out / "pkg" / "model.py").read_text() == (
        "from pkg.ferry_device import autocast\nfrom pkg import ferry_device as cuda\n"
        "from pkg import ferry_device\ny.to(ferry_device.DEVICE_TYPE)\n"
    )
    assert (out / "pkg" / "alias.py").read_text() == "from . import ferry_device as amp\nfrom . import x\n"
    assert "from pkg import ferry_device\n" in (out / "train.py").read_text()
    files = {
        item["path"]: item["status"] for item in json.loads((out / "findings.json").read_text())["files"]
    }
    assert files["pkg/ferry_device.py"] == "added"


def test_a_second_run_changes_nothing(project: Path, tmp_path: Path) -> None:
    assert ferry(project, "--in-place", "--force") == 0
    before = {path: path.read_bytes() for path in project.rglob("*.py")}
    assert ferry(project, "--in-place", "--force") == 0
    assert ferry(project, "--check") == 0
    assert {path: path.read_bytes() for path in project.rglob("*.py")} == before


def test_new_code_uses_the_module_that_is_there(project: Path) -> None:
    """It may have been changed by hand, and stays as it is."""
    assert ferry(project, "--in-place", "--force") == 0
    helper = project / "pkg" / "ferry_device.py"
    helper.write_text(helper.read_text() + "\nMINE = 1\n")
    (project / "pkg" / "new.py").write_text("import torch\nx.cuda()\n")
    assert ferry(project, "--in-place", "--force") == 0
    assert "MINE" in helper.read_text()
    assert "from pkg import ferry_device\n" in (project / "pkg" / "new.py").read_text()


def test_a_module_of_that_name_is_the_users(project: Path, tmp_path: Path) -> None:
    (project / "pkg" / "ferry_device.py").write_text("MINE = 1\n")
    assert ferry(project, "-o", tmp_path / "out") == 0
    assert (tmp_path / "out" / "pkg" / "ferry_device.py").read_text() == "MINE = 1\n"
    assert is_helper((tmp_path / "out" / "pkg" / "ferry_device_2.py").read_bytes())
    assert "ferry_device_2.DEVICE_TYPE" in (tmp_path / "out" / "train.py").read_text()


def test_a_single_file(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAIN)
    assert ferry(tmp_path / "train.py", "-o", tmp_path / "new" / "train_all.py") == 0
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == ["ferry_device.py", "train_all.py"]
    assert ferry(tmp_path / "train.py", "-o", tmp_path / "folder") == 0
    assert (tmp_path / "folder" / "ferry_device.py").exists()


def test_nothing_to_convert_adds_nothing(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "plain.py").write_text("print('cuda')\n")
    assert ferry(tmp_path / "project", "-o", tmp_path / "out") == 0
    assert not (tmp_path / "out" / "ferry_device.py").exists()


def test_portable_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "train.py").write_text(TRAIN)
    arguments = ["convert", str(tmp_path / "train.py"), "--to", "portable", "--keep-cuda", "--dry-run"]
    assert main(arguments) == 2
    assert "portable keeps CUDA anyway" in capsys.readouterr().err


CHOICES = {
    "": "cpu gloo False",
    "cpu": "cpu gloo False",
    "cuda": "RuntimeError: FERRY_DEVICE=cuda, but there is no such device here",
    "npu": "ModuleNotFoundError: No module named 'torch_npu'",
    "gpu": "ValueError: FERRY_DEVICE=gpu: must be one of npu, cuda, cpu",
}


@pytest.mark.parametrize(("asked", "answer"), list(CHOICES.items()))
def test_the_device_is_chosen_by_the_environment(asked: str, answer: str, tmp_path: Path) -> None:
    """On a machine that has nothing but a CPU."""
    pytest.importorskip("torch")
    (tmp_path / "ferry_device.py").write_bytes(helper_source(get_vendor("ascend")))
    source = "import ferry_device as d; print(d.DEVICE_TYPE, d.DIST_BACKEND, d.is_available())"
    ended = run_forked(source, {"FERRY_DEVICE": asked, "CUDA_VISIBLE_DEVICES": ""}, tmp_path)
    said = ended.stdout or ended.stderr
    assert said.strip().splitlines()[-1] == answer


STAND_INS = """
import torch
import ferry_device as d
side, start, end = d.Stream(), d.Event(enable_timing=True), d.Event(enable_timing=True)
start.record()
with d.device(0), d.stream(side):
    side.wait_stream(d.current_stream())
side.record_event(end)
end.synchronize()
assert start.elapsed_time(end) >= 0
assert d.memory_allocated() == d.max_memory_allocated(0) == d.device_count() == d.current_device() == 0
assert d.get_device_name(0) and d.get_device_properties(0).total_memory >= d.mem_get_info()[0]
assert d.manual_seed_all(1) is d.synchronize() is d.empty_cache() is d.set_device(3) is None
state = d.get_rng_state()
drawn = torch.rand(2)
d.set_rng_state(state)
assert torch.equal(drawn, torch.rand(2))
assert not d.GradScaler().is_enabled() and isinstance(d.GradScaler(), d.GradScaler)
with d.autocast():
    assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype is torch.float32
cpu = torch.device("cpu")
assert [d.place(x) for x in (None, 0, "cuda:1", torch.device("cuda"), "cpu")] == [cpu] * 5
assert d.place("meta").type == "meta" and d.unless_cpu([0]) is None
assert d.FloatTensor is torch.FloatTensor and issubclass(d.OutOfMemoryError, RuntimeError)
assert not hasattr(d, "CUDAGraph")
compiled = torch.compile(lambda x: x.to(d.DEVICE_TYPE) + 1, backend="eager", fullgraph=True)
assert compiled(torch.ones(1)).item() == 2
print("done")
"""


def test_stand_ins_of_the_cpu(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    (tmp_path / "ferry_device.py").write_bytes(helper_source(get_vendor("ascend")))
    (tmp_path / "uses.py").write_text(STAND_INS)
    ended = subprocess.run(
        [sys.executable, "-W", "error", "uses.py"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert ended.stdout == "done\n", ended.stderr
