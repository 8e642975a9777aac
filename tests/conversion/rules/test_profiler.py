"""TF501: profilers told which device to watch."""

from __future__ import annotations

import pytest

from tests.conversion.rewriting import VENDORS, expression, rewritten, said_of, vendor
from torchferry.vendors.model import Support


@pytest.mark.parametrize(
    "source",
    [
        pytest.param("use_cuda = True", id="a flag"),
        pytest.param("train(use_cuda=True)", id="a keyword of the user's function"),
        pytest.param("with profile(use_cuda=True): pass", id="the user's own profile"),
        pytest.param("parser.add_argument('--use_cuda')", id="a command-line flag"),
        pytest.param("print('torch.profiler.ProfilerActivity.CUDA')", id="a message"),
        pytest.param("# ProfilerActivity.CUDA", id="a comment"),
        pytest.param("def f(use_cuda): return use_cuda", id="a parameter"),
    ],
)
def test_noop(source: str) -> None:
    assert expression(source) == source


_ACTIVITY = "torch.profiler.ProfilerActivity.CUDA"


@pytest.mark.parametrize("name", VENDORS)
def test_activity(name: str) -> None:
    api = vendor(name).api(_ACTIVITY)
    source = f"a = [{_ACTIVITY}]"
    if api.support is Support.RENAMED:
        assert expression(source, name) == f"a = [{api.name}]"
        assert said_of(source, name) == []
    else:
        assert [(rule, kind) for rule, kind, _ in said_of(source, name)] == [("TF501", "unknown")]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "from torch.profiler import profile, ProfilerActivity\nprofile(activities=[ProfilerActivity.CUDA])\n",
            "from torch_npu.profiler import profile, ProfilerActivity\nprofile(activities=[ProfilerActivity.NPU])\n",
        ),
        ("import torch\np = torch.profiler.profile()\n", "import torch\np = torch.profiler.profile()\n"),
        (
            "import torch.profiler as prof\na = prof.ProfilerActivity.CUDA\np = prof.profile(prof.schedule(wait=1))\n",
            "import torch.profiler as prof\na = torch_npu.profiler.ProfilerActivity.NPU\n"
            "p = torch_npu.profiler.profile(torch_npu.profiler.schedule(wait=1))\n",
        ),
        ("from torch.profiler import record_function\n", "from torch.profiler import record_function\n"),
    ],
)
def test_a_vendor_with_its_own_profiler(before: str, after: str) -> None:
    assert rewritten(before) == after


@pytest.mark.parametrize("name", VENDORS)
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("use_cuda=True", 'use_device="{}"'),
        ("use_cuda=False", "use_device=None"),
        ("use_cuda=args.cuda", 'use_device="{}" if args.cuda else None'),
        ("enabled=True, use_cuda=a or b", 'enabled=True, use_device="{}" if a or b else None'),
    ],
)
def test_use_cuda(name: str, before: str, after: str) -> None:
    function = "torch.autograd.profiler.profile"
    expected = after.format(vendor(name).device_type)
    assert (
        expression(f"with {function}({before}) as p: pass", name) == f"with {function}({expected}) as p: pass"
    )


@pytest.mark.parametrize(
    "source",
    [
        pytest.param("p.key_averages().table(sort_by='cuda_time_total')", id="a column"),
        pytest.param(
            "p.key_averages().table(sort_by='self_cuda_time_total', row_limit=10)", id="a column of self time"
        ),
        pytest.param("t = sum(e.cuda_time_total for e in p.events())", id="an attribute of events"),
        pytest.param("with torch.autograd.profiler.emit_nvtx(): pass", id="emit_nvtx"),
    ],
)
def test_what_else_speaks_of_cuda_is_never_silent(source: str) -> None:
    before = f"with torch.profiler.profile() as p: pass\n{source}"
    assert source not in expression(before) or said_of(before)


def test_the_table_that_a_vendors_own_profiler_lacks_is_reported() -> None:
    source = (
        "from torch.profiler import profile, ProfilerActivity\n"
        "with profile(activities=[ProfilerActivity.CUDA]) as p:\n    pass\n"
        "print(p.key_averages().table())\n"
    )
    said = [text for rule, kind, text in said_of(source, "ascend") if (rule, kind) == ("TF501", "todo")]
    assert len(said) == 1 and "key_averages" in said[0]
    assert said_of(source, "cambricon") == []
    assert said_of("from torch.profiler import profile\nprofile().key_averages()\n", "ascend") == []
