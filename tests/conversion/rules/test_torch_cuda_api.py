"""TF102: names under torch.cuda."""

from __future__ import annotations

import pytest

from tests.conversion.rewriting import VENDORS, expression, findings, rewritten, said, said_of, vendor
from torchferry.vendors.model import Support


@pytest.mark.parametrize(
    "source",
    [
        pytest.param("# torch.cuda.empty_cache()", id="a comment"),
        pytest.param("'''torch.cuda.empty_cache()'''", id="a docstring"),
        pytest.param("print('torch.cuda.empty_cache()')", id="a message"),
        pytest.param("raise RuntimeError('torch.cuda is not available')", id="an error"),
        pytest.param("url = 'https://pytorch.org/docs/torch.cuda.html'", id="a URL"),
        pytest.param("def f(torch):\n    torch.cuda.empty_cache()", id="a parameter called torch"),
        pytest.param("f = lambda torch: torch.cuda.empty_cache()", id="a lambda's parameter"),
        pytest.param("x = [torch.cuda.f() for torch in ts]", id="a comprehension's variable"),
        pytest.param("def f():\n    torch = g()\n    torch.cuda.empty_cache()", id="a local variable"),
        pytest.param("import mytorch\nmytorch.cuda.empty_cache()", id="another library"),
        pytest.param("from .cuda import empty_cache\nempty_cache()", id="own cuda module"),
        pytest.param("from . import cuda\ncuda.empty_cache()", id="own cuda package"),
        pytest.param("from mylib import cuda\ncuda.synchronize()", id="a library's cuda module"),
        pytest.param("import pycuda.driver as cuda\ncuda.init()", id="pycuda"),
        pytest.param("from numba import cuda\ncuda.synchronize()", id="numba.cuda"),
        pytest.param("cuda = True\nif cuda:\n    pass", id="a flag"),
        pytest.param("use_cuda = args.cuda", id="flags"),
        pytest.param("other.torch.cuda.empty_cache()", id="an attribute called torch of something else"),
        pytest.param("torch_cuda.empty_cache()", id="a name that looks like it"),
    ],
)
def test_noop(source: str) -> None:
    assert expression(source) == source


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("torch.cuda.set_device(args.gpu)", "torch.npu.set_device(args.gpu)"),
        ("n = torch.cuda.device_count()", "n = torch.npu.device_count()"),
        ("torch.cuda.is_available", "torch.npu.is_available"),
        ("c = torch.cuda", "c = torch.npu"),
        ("torch.cuda.current_stream().wait_stream(s)", "torch.npu.current_stream().wait_stream(s)"),
        (
            "with torch.cuda.stream(s), torch.cuda.device(0): pass",
            "with torch.npu.stream(s), torch.npu.device(0): pass",
        ),
        ("@torch.cuda.amp.autocast()\ndef f(): pass", "@torch.npu.amp.autocast()\ndef f(): pass"),
        ("@torch.cuda.amp.autocast\ndef f(): pass", "@torch.npu.amp.autocast\ndef f(): pass"),
        ("@torch.cuda.amp.custom_fwd\ndef f(): pass", "@torch.npu.amp.custom_fwd\ndef f(): pass"),
        ("class S(torch.cuda.amp.GradScaler): pass", "class S(torch.npu.amp.GradScaler): pass"),
        ("def f(s: torch.cuda.Stream = None): pass", "def f(s: torch.npu.Stream = None): pass"),
        ("def f() -> Optional[torch.cuda.Event]: pass", "def f() -> Optional[torch.npu.Event]: pass"),
        ("s: torch.cuda.Stream", "s: torch.npu.Stream"),
        ("x = torch.cuda.FloatTensor(2)", "x = torch.npu.FloatTensor(2)"),
        ("x.type(torch.cuda.HalfTensor)", "x.type(torch.npu.HalfTensor)"),
        (
            "T = torch.cuda.FloatTensor if ok else torch.FloatTensor",
            "T = torch.npu.FloatTensor if ok else torch.FloatTensor",
        ),
        (
            "isinstance(x, (torch.cuda.FloatTensor, torch.Tensor))",
            "isinstance(x, (torch.npu.FloatTensor, torch.Tensor))",
        ),
        (
            "torch.set_default_tensor_type(torch.cuda.FloatTensor)",
            "torch.set_default_tensor_type(torch.npu.FloatTensor)",
        ),
        ("g = torch.cuda.CUDAGraph()", "g = torch.npu.NPUGraph()"),
        ("except_ = torch.cuda.OutOfMemoryError", "except_ = torch.OutOfMemoryError"),
        ("torch.cuda.nvtx.range_push('x')", "torch.npu.mstx.range_push('x')"),
        ("with torch.cuda.nvtx.range('x'): pass", "with torch.npu.mstx.annotate('x'): pass"),
        (
            "print(f'{torch.cuda.memory_allocated() / 1e9:.1f} GB')",
            "print(f'{torch.npu.memory_allocated() / 1e9:.1f} GB')",
        ),
        ("torch . cuda . synchronize ( )", "torch . npu . synchronize ( )"),
        ("x = (torch\n     .cuda\n     .synchronize())", "x = (torch\n     .npu\n     .synchronize())"),
        ("x = torch.\\\n    cuda.synchronize()", "x = torch.\\\n    npu.synchronize()"),
        ("cuda = torch.cuda\ncuda.set_device(1)", "cuda = torch.npu\ncuda.set_device(1)"),
        ("import torch as th\nth.cuda.synchronize()", "import torch as th\nth.npu.synchronize()"),
        ("def f():\n    torch.cuda.synchronize()", "def f():\n    torch.npu.synchronize()"),
        ("f = lambda x: torch.cuda.synchronize()", "f = lambda x: torch.npu.synchronize()"),
        ("getattr(torch.cuda, name)()", "getattr(torch.npu, name)()"),
        (
            "monkeypatch.setattr(torch.cuda, 'is_available', f)",
            "monkeypatch.setattr(torch.npu, 'is_available', f)",
        ),
    ],
)
def test_rewrites(before: str, after: str) -> None:
    assert expression(before) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("from torch import cuda\ncuda.synchronize()\n", "from torch import npu\nnpu.synchronize()\n"),
        ("from torch import cuda as c\nc.synchronize()\n", "from torch import npu as c\nc.synchronize()\n"),
        ("from torch import nn, cuda\nuse(cuda, nn)\n", "from torch import nn, npu\nuse(npu, nn)\n"),
        ("from torch import cuda\nnpu = 1\ncuda.f\n", "from torch import npu as cuda\nnpu = 1\ncuda.f\n"),
        ("from torch import cuda\ndef f(cuda): cuda.x\n", "from torch import npu\ndef f(cuda): cuda.x\n"),
        ("from torch.cuda import synchronize\n", "from torch.npu import synchronize\n"),
        ("from torch.cuda import Stream as S, Event\n", "from torch.npu import Stream as S, Event\n"),
        (
            "from torch.cuda import (\n    Stream,  # one\n    Event,\n)\n",
            "from torch.npu import (\n    Stream,  # one\n    Event,\n)\n",
        ),
        ("from torch.cuda.amp import autocast as ac\n", "from torch.npu.amp import autocast as ac\n"),
        ("from   torch.cuda   import Stream\n", "from   torch.npu   import Stream\n"),
        ("import torch.cuda\ntorch.cuda.f\n", "import torch.npu\ntorch.npu.f\n"),
        ("import torch.cuda as tc\ntc.synchronize()\n", "import torch.npu as tc\ntc.synchronize()\n"),
        ("import torch.cuda.amp as amp\namp.autocast()\n", "import torch.npu.amp as amp\namp.autocast()\n"),
        ("import os, torch.cuda as c\n", "import os, torch.npu as c\n"),
        (
            "from torch.cuda import CUDAGraph\nCUDAGraph()\n",
            "from torch.npu import NPUGraph as CUDAGraph\nCUDAGraph()\n",
        ),
        (
            "from torch.cuda import Stream, OutOfMemoryError\n",
            "from torch.npu import Stream\nfrom torch import OutOfMemoryError\n",
        ),
        (
            "try:\n    from torch.cuda import nccl, Stream\nexcept ImportError:\n    pass\n",
            "try:\n    from torch.cuda import nccl\n    from torch.npu import Stream\nexcept ImportError:\n    pass\n",
        ),
    ],
)
def test_imports(before: str, after: str) -> None:
    assert rewritten(before).replace("    import torch_npu\n", "") == after


def _names(name: str, *support: Support) -> dict[str, str]:
    apis = vendor(name).apis
    return {
        cuda: api.name
        for cuda, api in apis.items()
        if cuda.startswith("torch.cuda.") and api.support in support
    }


@pytest.mark.parametrize("name", VENDORS)
def test_every_name_of_every_vendors_table(name: str) -> None:
    known = _names(name, *Support)
    source = "import torch\n" + "".join(f"use({cuda})\n" for cuda in known)
    after = rewritten(source, name).removeprefix("import torch\n").splitlines()
    left = _names(name, Support.UNSUPPORTED)
    assert after == [f"use({cuda if cuda in left else new})" for cuda, new in known.items()]
    remarks = {(kind, text) for _, kind, text in said(source, name, rule="TF102")}
    assert remarks == {("unsupported", cuda) for cuda in left} | {
        ("unknown", cuda) for cuda in _names(name, Support.UNKNOWN)
    }


@pytest.mark.parametrize("name", VENDORS)
def test_a_name_that_no_table_lists_is_unknown(name: str) -> None:
    source = "torch.cuda.brand_new_function(1)"
    assert expression(source, name) == f"{vendor(name).torch_module}.brand_new_function(1)"
    assert said_of(source, name, "TF102") == [("TF102", "unknown", "torch.cuda.brand_new_function")]


def test_messages_name_the_vendor_and_the_name() -> None:
    (missing,) = findings("import torch\ntorch.cuda.comm.broadcast(x)\n", rule="TF102")
    assert missing.title.en == "`torch.cuda.comm.broadcast` has no equivalent on Huawei Ascend"
    assert (missing.line, missing.col, missing.vendor) == (2, 1, "ascend")
    (unknown,) = findings("import torch\ntorch.cuda.ipc_collect()\n", "tecorigin", rule="TF102")
    assert "torch.sdaa.ipc_collect" in unknown.message.en


def test_a_star_import_is_followed_and_reported() -> None:
    assert "from torch.npu import *" in rewritten("from torch.cuda import *\nsynchronize()\n")
    assert said("from torch.cuda import *\n", rule="TF102") == [("TF102", "todo", "*")]


def test_an_import_with_comments_that_would_have_to_be_split_is_left() -> None:
    source = "from torch.cuda import (\n    nccl,  # why\n    Stream,\n)\n"
    assert rewritten(source) == source
    kinds = {kind for _, kind, _ in said(source, rule="TF102")}
    assert kinds == {"todo", "unsupported"}
