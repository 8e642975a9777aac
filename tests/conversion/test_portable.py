"""Code converted for `portable` runs with torch, on whatever device is there."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.conversion.rewriting import run

torch = pytest.importorskip("torch")

_SNIPPETS = {
    "a method": "model = torch.nn.Linear(2, 2).cuda()\nresult = model(torch.ones(1, 2).cuda(non_blocking=True)).shape == (1, 2)",
    "an index": "result = torch.ones(1).cuda(0).sum().item() == 1",
    "an index that is None": "gpu = None\nresult = torch.ones(1).cuda(gpu).sum().item() == 1",
    "a device": "d = torch.device('cuda' if torch.cuda.is_available() else 'cpu')\nresult = torch.ones(1, device=d).device.type == d.type",
    "device strings": "i = 0\nds = [f'cuda:{i}', 'cuda:%d' % i, 'cuda:{}'.format(i), 'cuda:' + str(i), 'cuda:0']\n"
    "result = len({str(torch.ones(1).to(d).device) for d in ds}) == 1 and len(set(ds)) == 1",
    "comparisons": "x = torch.ones(1)\ndevice = x.device\n"
    "result = not (device.type == 'cuda') and device.type != 'cuda' and 'cuda' not in str(device) and not x.is_cuda",
    "autocast": "with torch.cuda.amp.autocast(enabled=False):\n    y = torch.ones(2, 2) @ torch.ones(2, 2)\nresult = y.sum().item() == 8",
    "autocast of torch": "with torch.autocast('cuda', dtype=torch.bfloat16):\n    y = torch.ones(2, 2) @ torch.ones(2, 2)\n"
    "result = y.sum().item() == 8",
    "a scaler": "scaler = torch.cuda.amp.GradScaler(enabled=False)\nresult = scaler.scale(torch.ones(1)).item() == 1",
    "map_location": "import io\nb = io.BytesIO()\ntorch.save({'x': torch.ones(1)}, b)\nb.seek(0)\n"
    "result = torch.load(b, map_location='cuda')['x'].item() == 1",
    "map_location by lambda": "import io\nb = io.BytesIO()\ntorch.save({'x': torch.ones(1)}, b)\nb.seek(0)\n"
    "result = torch.load(b, map_location=lambda s, loc: s.cuda())['x'].item() == 1",
    "argparse": "import argparse\np = argparse.ArgumentParser()\np.add_argument('--device', default='cuda', choices=['cuda', 'cpu'])\n"
    "result = torch.ones(1).to(p.parse_args([]).device).item() == 1",
    "a default": "def f(x, device='cuda'):\n    return x.to(device)\nresult = f(torch.ones(1)).item() == 1",
    "counting": "result = torch.cuda.device_count() >= 0 and torch.cuda.is_available() in (True, False)",
    "a guard": "if torch.cuda.is_available():\n    torch.cuda.synchronize()\n    torch.cuda.empty_cache()\nresult = True",
    "an import": "from torch.cuda.amp import autocast, GradScaler\nwith autocast():\n    s = GradScaler(enabled=False)\nresult = True",
    "an import of cuda": "from torch import cuda\nresult = cuda.is_available() in (True, False)",
    "a custom function": "class F(torch.autograd.Function):\n    @staticmethod\n    @torch.cuda.amp.custom_fwd\n"
    "    def forward(ctx, x):\n        return x * 2\n    @staticmethod\n    @torch.cuda.amp.custom_bwd\n"
    "    def backward(ctx, g):\n        return g * 2\nx = torch.ones(1, requires_grad=True)\nF.apply(x).backward()\n"
    "result = x.grad.item() == 2",
}


@pytest.mark.parametrize("source", list(_SNIPPETS.values()), ids=list(_SNIPPETS))
@pytest.mark.filterwarnings("ignore")
def test_runs(source: str) -> None:
    conversion = run(f"import torch\n{source}\n", "portable")
    assert conversion.new_text is not None
    values: dict[str, object] = {"__name__": "portable"}
    exec(compile(conversion.new_text, "module.py", "exec"), values)
    assert values["result"] is True


def test_a_training_program(tmp_path: Path) -> None:
    source = textwrap.dedent(
        """\
        import argparse
        import torch
        from torch import nn
        from torch.cuda.amp import GradScaler, autocast

        def main():
            parser = argparse.ArgumentParser()
            parser.add_argument("--gpu", default=None, type=int)
            parser.add_argument("--device", default="cuda")
            args = parser.parse_args([])
            torch.manual_seed(0)
            model = nn.Linear(4, 2).cuda(args.gpu)
            loss_of = nn.CrossEntropyLoss().cuda(args.gpu)
            optimizer = torch.optim.SGD(model.parameters(), 0.1)
            scaler = GradScaler(enabled=False)
            for step in range(3):
                x = torch.randn(8, 4).cuda(args.gpu, non_blocking=True)
                y = torch.zeros(8, dtype=torch.long).to(args.device)
                with autocast(enabled=False):
                    loss = loss_of(model(x), y)
                optimizer.zero_grad()
                scaler.scale(loss).backward()
                scaler.step(optimizer)
                scaler.update()
            print("done", loss.item() > 0)

        if __name__ == "__main__":
            main()
        """
    )
    text = run(source, "portable").new_text
    assert text is not None
    (tmp_path / "train.py").write_text(text)
    done = subprocess.run(
        [sys.executable, "train.py"], cwd=tmp_path, capture_output=True, text=True, timeout=100, check=False
    )
    assert (done.stdout, done.returncode) == ("done True\n", 0), done.stderr
