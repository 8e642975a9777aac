"""How programs ask where they are: the original of a proof answers as on a GPU, in every idiom, and so it branches."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.forking import run_forked
from torchferry.launch.environment import child_environment
from torchferry.runtime.settings import REFERENCE, LayerSettings
from torchferry.sim.environment import settings_for
from torchferry.vendors.registry import get_vendor

PROGRAM = """
import copy, io, json, sys
import torch
d, d1 = torch.device("cuda"), torch.device("cuda:1")
h = torch.ones(2, 2)
x = h.to(d)
net, norm = torch.nn.Linear(2, 2).to(d), torch.nn.BatchNorm1d(2).cuda()

def chosen(kind):
    match kind:
        case "cuda": return "gpu"
        case "cpu": return "host"
    return "other"

def loaded(place, tensor=x):
    file = io.BytesIO()
    torch.save(tensor, file)
    file.seek(0)
    return torch.load(file, map_location=place).device.index

def kept(place):
    "What a copy holds after the original has changed; on another device it is one."
    tensor = torch.zeros(1, device=d)
    copied = tensor.to(place)
    tensor.add_(1)
    return copied.item()

names = dict(globals())
rows = json.loads(sys.argv[1])
print(json.dumps([eval(row, names) for row in rows]))
"""

# what a GPU answers, and a migrated program under the layer as well
BOTH = {
    "d.type == 'cuda'": True,
    "'cuda' == d.type": True,
    "d.type != 'cpu'": True,
    "d.type in ('cpu', 'mps')": False,
    "d.type in ['cuda', 'npu']": True,
    "d.type not in ('cpu',)": True,
    "chosen(d.type)": "gpu",
    "d.type.startswith('cuda')": True,
    "'cuda' in d.type": True,
    "[d.index, d1.index]": [None, 1],
    "d == torch.device('cuda')": True,
    "d == torch.device('cuda:0')": False,
    "d1 == torch.device('cuda', 1)": True,
    "d == torch.device('cpu')": False,
    "x.device == torch.device('cuda:0')": True,
    "x.device == h.device": False,
    "{d: 1}.get(torch.device('cuda'))": 1,
    "[x.is_cuda, h.is_cuda, h.is_cpu, x.is_cpu]": [True, False, True, False],
    "[x.get_device(), h.get_device()]": [0, -1],
    "next(net.parameters()).device.type != 'cpu'": True,
    "next(net.parameters()).is_cuda": True,
    "norm.running_mean.device.type == 'cuda'": True,
    "net(x).device.type == 'cuda'": True,
    "net(x).sum().device.type in ('cpu',)": False,
    "[torch.nn.LazyLinear(2).cuda()(x).is_cuda, torch.nn.LazyLinear(2).to(d)(x).is_cuda]": [True, True],
    "h.device.type": "cpu",
    "(h + 1).device.type != 'cpu'": False,
    "torch.zeros(2).is_cuda": False,
    "torch.zeros(2, device=d).is_cuda": True,
    "x.cpu().is_cuda": False,
    "torch.zeros_like(x).is_cuda": True,
    "x.new_tensor([1.0]).is_cuda": True,
    "copy.deepcopy(norm).running_var.is_cuda": True,
    "copy.deepcopy(net).cpu().weight.is_cuda": False,
    "x.to('cuda:1').device.index": 1,
    "(x.to('cuda:1') * 2).device.index": 1,
    "[x.to(d) is x, x.cuda() is x, h.cpu() is h, x.cpu() is x]": [True, True, True, False],
    "kept('cpu')": 0.0,
    "kept(d)": 1.0,
    "loaded(None)": 0,
    "loaded('cpu')": None,
    "loaded(d)": 0,
    "loaded(d1)": 1,
    "loaded('cuda:1')": 1,
    "loaded(torch.device('cpu'))": None,
    "loaded({'cuda:0': 'cuda:1'})": 1,
    "loaded(lambda storage, place: storage)": None,
    "loaded(lambda storage, place: storage.cuda(1))": 1,
    "torch.accelerator.is_available()": True,
    "torch.accelerator.current_accelerator().type == 'cuda'": True,
}
# texts, which the layer does not change: the migrated program has its own device's
TEXTS = {
    "str(d1)": ("cuda:1", "npu:1"),
    "f'{d}'": ("cuda", "npu"),
    "repr(d1)": ("device(type='cuda', index=1)", "device(type='npu', index=1)"),
    "{'cuda': 1, 'cpu': 2}.get(d.type)": (1, None),
    "d.type.upper()": ("CUDA", "NPU"),
}


@cache
def _answers(side: str) -> dict[str, object]:
    rows = [*BOTH, *TEXTS]
    with TemporaryDirectory() as folder:
        script = Path(folder) / "program.py"  # a file: a program has a name of its own
        script.write_text(PROGRAM)
        result = run_forked(script, _environment(side), arguments=[json.dumps(rows)])
    assert result.returncode == 0, result.stderr
    return dict(zip(rows, json.loads(result.stdout), strict=True))


def _environment(side: str) -> dict[str, str]:
    if side == REFERENCE:
        return child_environment({}, None, None, LayerSettings(REFERENCE, reference_devices=2))
    vendor = get_vendor(side)
    return child_environment({}, vendor, settings_for(vendor, 2), LayerSettings(side))


@pytest.mark.parametrize("idiom", BOTH)
def test_both_sides_branch_as_on_a_gpu(idiom: str) -> None:
    assert _answers(REFERENCE)[idiom] == BOTH[idiom]
    assert _answers("ascend")[idiom] == BOTH[idiom]


@pytest.mark.parametrize("idiom", TEXTS)
def test_a_text_is_the_gpus_in_the_original_and_the_devices_in_the_migrated_program(idiom: str) -> None:
    assert (_answers(REFERENCE)[idiom], _answers("ascend")[idiom]) == TEXTS[idiom]
