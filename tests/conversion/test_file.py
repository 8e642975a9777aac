"""Whole modules: bytes outside edits, idempotence, order, silence on request."""

from __future__ import annotations

import codecs
import random
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conversion.rewriting import VENDORS, run, said, target
from torchferry.conversion.file import FileJob, convert_text
from torchferry.conversion.project import convert_file
from torchferry.conversion.rule import Proposal, Rule, RuleSet, all_rules
from torchferry.finding import Kind
from torchferry.outcome import FileStatus
from torchferry.source.decode import decode
from torchferry.source.edits import Edit
from torchferry.text import Text


@cache
def job(to: str = "ascend") -> FileJob:
    return FileJob(target(to), RuleSet(rule for rule in all_rules() if not rule.option))


def new_bytes(data: bytes, to: str = "ascend") -> bytes:
    outcome = convert_file("module.py", data, job(to))
    assert outcome.record.status is not FileStatus.FAILED, outcome.record.reason
    return data if outcome.new_data is None else outcome.new_data


_LINES = [
    "import torch",
    "x = x.cuda()  # .cuda() stays",
    "",
    "if x:",
    "\ttorch.cuda.synchronize()",
    "y = 'cuda:0'   ",
]
_AFTER = [
    "import torch",
    "import torch_npu",
    "x = x.npu()  # .cuda() stays",
    "",
    "if x:",
    "\ttorch.npu.synchronize()",
    "y = 'npu:0'   ",
]


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"], ids=["LF", "CRLF", "CR"])
@pytest.mark.parametrize("final", [True, False], ids=["final newline", "no final newline"])
@pytest.mark.parametrize(
    ("head", "encoding"),
    [
        pytest.param("", "utf-8", id="plain"),
        pytest.param("# -*- coding: gbk -*-\n# 设备 cuda\ns = '设备'\n", "gbk", id="GBK"),
        pytest.param("#!/usr/bin/python\n# coding: latin-1\ns = 'é cuda'\n", "latin-1", id="latin-1"),
        pytest.param("# 设备\ns = '设备'\n", "utf-8", id="UTF-8"),
        pytest.param("s = '设备'\n", "utf-8-sig", id="BOM"),
        pytest.param("\f\n# page\n\f", "utf-8", id="form feed"),
        pytest.param("s = 'a\x0bb\x1cc\x85d\u2028e'\n", "utf-8", id="odd separators"),
    ],
)
def test_bytes_outside_edits_stay(newline: str, final: bool, head: str, encoding: str) -> None:
    def module(lines: list[str]) -> bytes:
        text = head + "\n".join(lines) + ("\n" if final else "")
        return text.replace("\n", newline).encode(encoding)

    before, after = module(_LINES), module(_AFTER)
    assert new_bytes(before) == after
    assert new_bytes(after) == after
    assert after.startswith(codecs.BOM_UTF8) is (encoding == "utf-8-sig")


def test_newlines_that_differ_from_line_to_line_stay() -> None:
    before = b"import torch\r\nx.cuda()\ny.cuda()\rz.cuda()\r\n\r\n"
    after = b"import torch\r\nimport torch_npu\r\nx.npu()\ny.npu()\rz.npu()\r\n\r\n"
    assert new_bytes(before) == after


def test_undeclared_gbk_is_converted_and_said() -> None:
    before = "import torch\n# 设备\nx.cuda()\n".encode("gbk")
    outcome = convert_file("module.py", before, job())
    assert outcome.new_data == "import torch\nimport torch_npu\n# 设备\nx.npu()\n".encode("gbk")
    assert [item.rule for item in outcome.findings if item.kind is not Kind.CHANGE] == ["TF904"]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\n",
        b"# cuda",
        b"'cuda'",
        b"x = 1\n\\\n",
        b"\xef\xbb\xbf",
        b"def cuda(): pass",
        "设备 = 'cuda 设备'".encode(),
    ],
)
def test_nothing_to_change(data: bytes) -> None:
    assert convert_file("module.py", data, job()).new_data is None


_SNIPPETS = [
    "x = x.cuda()",
    "x = x.cuda(0, non_blocking=True)",
    "torch.cuda.set_device(0)",
    "d = torch.device('cuda' if torch.cuda.is_available() else 'cpu')",
    "d = f'cuda:{i}'",
    "d = 'cuda:%d' % i",
    "if device.type == 'cuda': pass",
    "os.environ['CUDA_VISIBLE_DEVICES'] = '0'",
    "torch.distributed.init_process_group('nccl')",
    "with torch.cuda.amp.autocast(): pass",
    "s = torch.cuda.amp.GradScaler(enabled=True)",
    "def f(device='cuda', backend=\"nccl\"): return x.cuda()",
    "@torch.cuda.amp.autocast()\nclass B: device = 'cuda:0'\nfrom torch.cuda.amp import autocast as ac\nfrom torch.cuda import Stream, OutOfMemoryError\nfrom torch import cuda\nimport torch.cuda.amp as amp\np = torch.profiler.ProfilerActivity.CUDA\nif x.is_cuda: pass\nt = x.type('torch.cuda.FloatTensor')\nfrom apex.normalization import FusedLayerNorm\nprint(f\"{torch.cuda.device_count()} é {'cuda'} {x.cuda()!r:>{w}}\")\nparser.add_argument('--device', default='cuda', choices=['cuda', 'cpu'], help='cuda')\nm = torch.nn.DataParallel(m).cuda()\ntorch.load(p, map_location={'cuda:0': 'cpu'}); x.cuda()\nz = (torch\\\n.cuda.synchronize())\nclass C:\x0c\n\tdef cuda(self): return self\nok = torch.distributed.is_nccl_available()\n# cuda 设备\n'''cuda docstring\nx.cuda()'''\nstate = {'cuda': torch.cuda.get_rng_state()}",
    "class D(B):\n    def is_cuda(self): return x.is_cuda",
    "if ok:\n    import torch; x.cuda()",
    "try: x.cuda()\nexcept torch.cuda.OutOfMemoryError: pass",
    "lambda t, device='cuda': t.to(device)",
]
_HEADS = ["", "'''doc'''\n", "from __future__ import annotations\n", "#!/x\n# coding: utf-8\n"]
_IMPORTS = [
    "import torch\n",
    "import os, torch\n",
    "try:\n    import torch\nexcept ImportError:\n    torch = None\n",
    "",
]


@settings(max_examples=120, deadline=None)
@given(
    st.sampled_from(_HEADS),
    st.sampled_from(_IMPORTS),
    st.lists(st.sampled_from(_SNIPPETS), min_size=1, max_size=8),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.booleans(),
    st.sampled_from([*VENDORS, "portable"]),
)
def test_any_mixture_compiles_and_is_done_at_once(
    head: str, imports: str, snippets: list[str], newline: str, final: bool, to: str
) -> None:
    text = head + imports + "\n".join(snippets) + ("\n" if final else "")
    before = text.replace("\n", newline).encode()
    after = new_bytes(before, to)
    compile(after, "module.py", "exec")
    assert new_bytes(after, to) == after
    assert new_bytes(before, to) == after


def test_a_long_module_of_everything() -> None:
    chosen = random.Random(0).choices(_SNIPPETS, k=400)
    before = ("import torch\n" + "\n".join(chosen) + "\n").encode()
    for to in (*VENDORS, "portable"):
        after = new_bytes(before, to)
        compile(after, "module.py", "exec")
        assert new_bytes(after, to) == after


@pytest.mark.parametrize(
    ("comment", "changed"),
    [
        ("# ferry: ignore", False),
        ("#ferry: ignore", False),
        ("# noqa # ferry: ignore", False),
        ("# ferry: ignore[TF103]", False),
        ("# ferry: ignore[TF105, TF103]", False),
        ("# ferry: ignore[TF105 TF103]", False),
        ("# ferry: ignore[TF105]", True),
        ("# ferry: ignore[TF10]", True),
        ("# ferry: ignored?", True),
        ("# ferry ignore", True),
    ],
)
def test_ignore(comment: str, changed: bool) -> None:
    conversion = run(f"import torch\nx = x.cuda()  {comment}\n")
    assert (conversion.new_text is not None) is changed


def test_ignore_silences_only_its_line() -> None:
    conversion = run("import torch\nx = x.cuda()  # ferry: ignore\ny = y.cuda()\n")
    assert (
        conversion.new_text == "import torch\nimport torch_npu\nx = x.cuda()  # ferry: ignore\ny = y.npu()\n"
    )


def test_ignore_silences_remarks_too() -> None:
    source = "import torch\nv = torch.version.cuda"
    assert said(source) != []
    assert said(f"{source}  # ferry: ignore\n") == []
    assert said(f"{source}  # ferry: ignore[TF603]\n") == []


def test_ignore_in_a_string_is_no_comment() -> None:
    assert run("import torch\nx = f(x.cuda(), '# ferry: ignore')\n").new_text is not None


def _rule(number: int, *edits: Edit) -> Rule:
    text = Text(f"rule {number}", f"规则 {number}")

    def finish(context: object, said: object) -> object:
        return [Proposal(Kind.CHANGE, 0, 1, text, edits)] if context.module.data.startswith(b"abc") else []  # type: ignore[attr-defined]

    return Rule(id=f"TF{number}", name=f"r{number}", summary=text, triggers=("abc",), finish=finish)  # type: ignore[arg-type]


def test_of_two_changes_that_meet_the_first_is_made() -> None:
    rules = (_rule(1, Edit(0, 3, "x")), _rule(2, Edit(2, 5, "y")), _rule(3, Edit(0, 3, "x")))
    conversion = convert_text(decode(b"abcdef = 1\n"), "m.py", FileJob(target("ascend"), RuleSet(rules)))
    assert conversion.new_text == "xdef = 1\n"
    assert [(item.rule, item.kind.value) for item in conversion.findings] == [
        ("TF1", "change"),
        ("TF2", "todo"),
        ("TF3", "change"),
    ]
    assert conversion.findings[1].message.en == "Two changes overlap; not made: rule 2"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        pytest.param("(", "", id="does not parse"),
        pytest.param("abc", "second conversion", id="would change again"),
        pytest.param("x = '''\n", "", id="opens a string"),
    ],
)
def test_a_rewrite_that_fails_its_check_is_thrown_away(text: str, reason: str) -> None:
    data = b"abc = 1\ny = '''a'''\n"
    outcome = convert_file("m.py", data, FileJob(target("ascend"), RuleSet([_rule(1, Edit(0, 3, text))])))
    assert outcome.new_data is None
    assert outcome.record.status is FileStatus.FAILED
    assert reason in outcome.record.reason
    assert [(item.rule, item.kind.value) for item in outcome.findings] == [("TF903", "todo"), ("TF1", "todo")]


def test_findings_are_where_they_say() -> None:
    findings = run("import torch\ns = '设备'; x = x.cuda()\n").findings
    (moved,) = [item for item in findings if item.rule == "TF103"]
    assert (moved.line, moved.col, moved.before, moved.after) == (2, 15, "x.cuda()", "x.npu()")
    assert (moved.path, moved.vendor, moved.kind) == ("module.py", "ascend", Kind.CHANGE)


@pytest.mark.parametrize(
    ("source", "to"),
    [
        pytest.param("model = torch.cuda\nmodel.cuda('')\n", "portable", id="a module under another name"),
        pytest.param("model = torch.cuda\nmodel.e.cuda()\n", "ascend+cuda", id="a method of such a name"),
        pytest.param(
            "g(k=d[f(f\"{'cuda'}{0}\")])\ndef f(device=''): pass\n", "ascend+cuda", id="a string in a string"
        ),
    ],
)
def test_rules_that_meet_what_others_wrote_go_on_to_the_end(source: str, to: str) -> None:
    first = run(f"import torch\n{source}", to).new_text
    assert first is not None
    assert run(first, to).new_text is None
