"""The audit's classifier and checker, on small snippets."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path

import pytest
from tools.audit.__main__ import main
from tools.audit.check import check_file
from tools.audit.classify import classify_text
from tools.audit.findings import Finding, Findings
from tools.audit.model import HUMAN, KEEP, MUST, Vendor
from tools.audit.text import string_parts

NPU = Vendor("npu", "hccl", "torch_npu")


def classes(code: str, word: str = "") -> list[str]:
    """The classes of the sites, in order of place; only those whose text is `word` when one is given."""
    sites = sorted(classify_text(textwrap.dedent(code)).sites, key=lambda site: site.offset)
    return [site.call.cls for site in sites if not word or site.text == word]


@pytest.mark.parametrize(
    "code",
    [
        pytest.param("use_cuda = not no_cuda", id="variables"),
        pytest.param("if args.cuda: pass", id="settings attribute"),
        pytest.param("self.cuda = True", id="own attribute"),
        pytest.param("def cuda(self): pass", id="own method"),
        pytest.param("def f(cuda=True, is_cuda=False): return cuda", id="parameters"),
        pytest.param("f(use_cuda=True)", id="keyword name"),
        pytest.param("from .cuda import kernel", id="own module, relative"),
        pytest.param("import mypkg.cuda.kernels", id="own module, absolute"),
        pytest.param("import mypkg\nmypkg.cuda.launch()", id="own module, used"),
        pytest.param("from mypkg.device import is_cuda_available\nis_cuda_available()", id="imported helper"),
        pytest.param("p.add_argument('--no-cuda', help='do not use cuda')", id="flag and help"),
        pytest.param("getattr(args, 'cuda')", id="attribute by name"),
        pytest.param("state['cuda_rng_state']", id="checkpoint key"),
        pytest.param("states['torch.cuda']", id="checkpoint key with a dot"),
        pytest.param("# x.cuda()\n", id="comment"),
        pytest.param('def f():\n    """x.to("cuda")"""', id="docstring"),
        pytest.param("print('using cuda:0')", id="message"),
        pytest.param("logger.info('cuda')", id="one-word message"),
        pytest.param("raise ValueError(f'cuda:{i} is not there')", id="exception text"),
        pytest.param("assert ok, 'cuda'", id="assert text"),
        pytest.param("url = 'https://example.org/cuda/nccl'", id="address"),
        pytest.param("src = 'at::cuda::getCurrentCUDAStream();'", id="C++ text"),
        pytest.param("folder = here / 'cuda'", id="folder name, slash"),
        pytest.param("os.path.join('cuda', 'kernel.cu')", id="folder name, join"),
        pytest.param("import torch\ntorch.backends.cudnn.benchmark = True", id="cudnn"),
        pytest.param("from torch.nn.parallel import DistributedDataParallel as DDP", id="DDP"),
        pytest.param("import tritonclient.grpc", id="another library with a similar name"),
        pytest.param("import torch\nversion = torch.x\ncuda = torch.cuda_is\n", id="data, no module"),
    ],
)
def test_keep(code: str) -> None:
    found = classes(code)
    assert set(found) <= {KEEP, HUMAN} if "cuda_is" in code else set(found) == {KEEP}


@pytest.mark.parametrize(
    ("code", "count"),
    [
        pytest.param("import torch\ntorch.cuda.set_device(0)", 1, id="torch.cuda"),
        pytest.param("import torch as th\nth.cuda.synchronize()", 1, id="alias of torch"),
        pytest.param("from torch import cuda\ncuda.synchronize()", 2, id="from torch import cuda"),
        pytest.param("import torch.cuda.amp as amp", 1, id="import of a submodule"),
        pytest.param("from torch.cuda.amp import autocast", 1, id="from a submodule"),
        pytest.param("x = torch.zeros(1).cuda()", 1, id="method call"),
        pytest.param("super().cuda(device)", 1, id="method of the base class"),
        pytest.param("if x.is_cuda: pass", 1, id="is_cuda"),
        pytest.param("print(f'{torch.cuda.memory_allocated()} bytes')", 1, id="code in an f-string"),
        pytest.param("x.to('cuda')", 1, id="to"),
        pytest.param("x.to(f'cuda:{i}')", 1, id="f-string"),
        pytest.param("x.to('cuda:%d' % i)", 1, id="percent"),
        pytest.param("x.to('cuda:{}'.format(i))", 1, id="format"),
        pytest.param("x.to('cuda:' + str(i))", 1, id="concatenation"),
        pytest.param("device = 'cuda' if ok else 'cpu'", 1, id="conditional"),
        pytest.param("f(device='cuda')", 1, id="keyword"),
        pytest.param("def f(x, device: str = 'cuda'): pass", 1, id="default"),
        pytest.param("def f(x, *, map_location='cuda'): pass", 1, id="keyword-only default"),
        pytest.param("if x.device.type == 'cuda': pass", 1, id="comparison"),
        pytest.param("if 'cuda' in str(device): pass", 1, id="containment"),
        pytest.param("str(device).startswith('cuda')", 1, id="startswith"),
        pytest.param("cfg = {'device': 'cuda'}", 1, id="value by its key"),
        pytest.param("for device in ('cpu', 'cuda'): pass", 1, id="loop"),
        pytest.param("p.add_argument('--device', default='cuda', choices=['cpu', 'cuda'])", 2, id="options"),
        pytest.param("getattr(args, 'device', 'cuda')", 1, id="fallback of getattr"),
        pytest.param("def get_device():\n    return 'cuda'", 1, id="return"),
        pytest.param("where = 'cuda'\nx.to(where)", 1, id="flow into .to"),
        pytest.param("def f(x, device): pass\nf(1, 'cuda')", 1, id="positional argument by parameter"),
        pytest.param("dist.init_process_group(backend='nccl')", 1, id="backend keyword"),
        pytest.param(
            "import torch.distributed as dist\ndist.init_process_group('nccl')", 1, id="backend positional"
        ),
        pytest.param("if dist.get_backend() == 'nccl': pass", 1, id="backend compared"),
        pytest.param("import torch\ntorch.distributed.is_nccl_available()", 1, id="is_nccl_available"),
        pytest.param("backend = 'cpu:gloo,cuda:nccl'", 2, id="backend by device type"),
        pytest.param("t = 'torch.cuda.FloatTensor'", 1, id="type string"),
        pytest.param("patch('torch.cuda.is_available')", 1, id="name in a patch"),
        pytest.param("import os\nos.environ['CUDA_VISIBLE_DEVICES'] = '0'", 1, id="visible devices"),
        pytest.param("os.getenv('CUDA_VISIBLE_DEVICES')", 1, id="visible devices, getenv"),
        pytest.param(
            "@dataclass\nclass A:\n    backend: str = field(default='nccl')", 1, id="dataclass field"
        ),
    ],
)
def test_must(code: str, count: int) -> None:
    assert classes(code) == [MUST] * count


@pytest.mark.parametrize(
    ("code", "word"),
    [
        pytest.param("from apex import amp", "apex", id="apex"),
        pytest.param("from flash_attn import flash_attn_func", "flash_attn", id="flash_attn"),
        pytest.param("import xformers.ops", "xformers", id="xformers"),
        pytest.param("import triton\n@triton.jit\ndef f(): pass", "triton", id="triton"),
        pytest.param("import pynvml", "pynvml", id="pynvml"),
        pytest.param("importlib.import_module('cupy')", "cupy", id="import by name"),
        pytest.param("subprocess.run(['nvidia-smi', '-L'])", "nvidia-smi", id="nvidia-smi"),
        pytest.param("import bitsandbytes as bnb", "bitsandbytes", id="bitsandbytes"),
        pytest.param("from numba import cuda\n@cuda.jit\ndef f(): pass", "cuda", id="numba.cuda"),
        pytest.param("import pycuda.driver", "pycuda", id="pycuda"),
        pytest.param("from torch.utils.cpp_extension import CUDAExtension", "CUDAExtension", id="extension"),
        pytest.param("import torch\nv = torch.version.cuda", "cuda", id="version"),
        pytest.param("import torch.nn as nn\nm = nn.DataParallel(m)", "DataParallel", id="DataParallel"),
        pytest.param("import torch\ng = torch.cuda.CUDAGraph()", "CUDAGraph", id="graph"),
        pytest.param("os.environ['NCCL_DEBUG'] = 'INFO'", "NCCL", id="NCCL variable"),
        pytest.param("table = {'cuda': 1}", "cuda", id="key of a table"),
        pytest.param("if policy == 'cuda': pass", "cuda", id="compared with an unknown"),
        pytest.param("if kind in ('cuda', 'npu'): pass", "cuda", id="beside another accelerator"),
    ],
)
def test_human(code: str, word: str) -> None:
    assert set(classes(code, word)) == {HUMAN}


def test_shadowed_names_are_the_users() -> None:
    assert classes("from torch import cuda\ndef f(cuda):\n    return cuda.x\n") == [MUST, KEEP, KEEP]


def test_mixed_line() -> None:
    assert classes("cuda = torch.cuda.is_available() and not args.no_cuda  # cuda\n") == [
        KEEP,
        MUST,
        KEEP,
        KEEP,
    ]


def test_non_ascii_columns() -> None:
    file = classify_text("x = '变量', torch.cuda.f()\n")
    assert [(site.col, site.call.cls) for site in file.sites] == [(17, MUST)]


def test_fstring_parts() -> None:
    raw = "f'{{a}} {b[\"c\"]!r:>{w}} d{e=}'"
    parts = [(kind, raw[start:end]) for kind, start, end in string_parts(raw)]
    assert [text for kind, text in parts if kind == "code"] == ['b["c"]', "w", "e"]


def verdicts(old: str, new: str, *findings: Finding) -> list[tuple[str, str]]:
    """The wrong verdicts of one file: (group, outcome)."""
    found = Findings()
    found.by_path["a.py"] = list(findings)
    results = check_file("a.py", old.encode(), new.encode(), found, NPU)
    return [(item.group, item.outcome) for item in results if not item.ok]


OLD = "import torch\nx = torch.zeros(1).cuda()  # cuda\n"
NEW = "import torch\nimport torch_npu\nx = torch.zeros(1).npu()  # cuda\n"


def note(kind: str, line: int, col: int, before: str) -> Finding:
    """A finding about a piece of the original."""
    return Finding(kind, line, col, before.lower(), before, "")


def test_right_conversion() -> None:
    assert verdicts(OLD, NEW) == []


def test_silent_must() -> None:
    assert verdicts(OLD, OLD) == [(MUST, "silent")]


def test_reported_must() -> None:
    assert verdicts(OLD, OLD, note("unsupported", 2, 20, "cuda")) == []
    assert verdicts(OLD, OLD, note("change", 2, 20, "cuda")) == [(MUST, "silent")]


def test_report_about_another_site_of_the_line_does_not_count() -> None:
    old = "import torch\ny = torch.cuda.comm, x.cuda()\n"
    assert verdicts(old, old, note("todo", 2, 5, "torch.cuda.comm")) == [(MUST, "silent")]


def test_edited_keep() -> None:
    assert verdicts(OLD, NEW.replace("# cuda", "# npu")) == [(KEEP, "edited")]


def test_unrelated_edit_and_insertion() -> None:
    assert verdicts("a = 1\n" + OLD, "a  = 1\n" + NEW) == [("line", "unrelated edit")]
    assert verdicts(OLD, NEW + "b = 2\n") == [("line", "unrelated insertion")]


def test_alias_of_an_own_method_is_allowed() -> None:
    old = "class A:\n    def cuda(self): return 1\n"
    assert verdicts(old, old + "    npu = cuda\n") == []


def test_plugin_import_missing_or_double() -> None:
    old = "import torch\ntorch.cuda.f()\n"
    assert verdicts(old, "import torch\ntorch.npu.f()\n") == [("file", "no plugin import")]
    double = "import torch\nimport torch_npu\nimport torch_npu\ntorch.npu.f()\n"
    assert verdicts(old, double) == [("file", "plugin imported twice")]


def test_broken_result() -> None:
    assert verdicts(OLD, NEW.replace("npu()", "npu((")) == [("file", "does not compile")]


def test_line_ends_must_stay() -> None:
    old = OLD.replace("\n", "\r\n")
    assert verdicts(old, NEW.replace("\n", "\r\n")) == []
    assert ("line", "unrelated edit") in verdicts(old, NEW)


def test_use_through_a_converted_import() -> None:
    old = "from torch import cuda\ncuda.synchronize()\n"
    new = "import torch_npu\nfrom torch import npu as cuda\ncuda.synchronize()\n"
    assert verdicts(old, new) == []


def test_human_must_be_reported() -> None:
    old = "import torch\nv = torch.version.cuda\n"
    assert verdicts(old, old) == [(HUMAN, "silent")]
    assert verdicts(old, old, note("todo", 2, 5, "torch.version.cuda")) == []
    assert verdicts(old, old.replace("cuda", "npu"), note("change", 2, 5, "torch.version.cuda")) == [
        (HUMAN, "edited silently")
    ]


def test_library_uses_need_one_finding_per_file() -> None:
    old = "import triton\n\n\n@triton.jit\ndef f(): pass\n"
    assert verdicts(old, old, note("unsupported", 1, 1, "import triton")) == []


def test_unparsable_file_must_be_listed() -> None:
    old = "print 'cuda'\n"
    assert verdicts(old, old) == [("file", "unparsed, unreported")]


def test_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before, after = tmp_path / "before", tmp_path / "after"
    before.mkdir()
    after.mkdir()
    (before / "a.py").write_text(OLD)
    (after / "a.py").write_text(NEW)
    findings = tmp_path / "findings.json"
    findings.write_text(json.dumps({"findings": [], "files": []}))
    vendor = ["--device", "npu", "--backend", "hccl", "--plugin", "torch_npu"]
    sample = tmp_path / "sample.tsv"
    extra = ["--sample", "2", "--sample-file", str(sample)]
    assert main([str(before), str(after), str(findings), *vendor, *extra]) == 0
    assert len(sample.read_text().splitlines()) == 3
    wrong = tmp_path / "wrong.jsonl"
    (after / "a.py").write_text(OLD)
    assert main([str(before), str(after), str(findings), *vendor, "--list", str(wrong)]) == 1
    assert json.loads(wrong.read_text())["outcome"] == "silent"
    assert main([str(before), "--classify-only"]) == 0
    assert "wrong: 1" in capsys.readouterr().out


def test_a_name_that_the_vendor_keeps_is_changed_by_its_module() -> None:
    old = "import torch\ntorch.cuda.cudart()\n"
    new = "import torch\nimport torch_sdaa\ntorch.sdaa.cudart()\n"
    vendor = Vendor("sdaa", "tccl", "torch_sdaa")
    verdicts = list(check_file("m.py", old.encode(), new.encode(), Findings(), vendor))
    assert all(verdict.ok for verdict in verdicts)
