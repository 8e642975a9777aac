"""TF730: calls with an equivalent, and what becomes of their imports."""

from __future__ import annotations

import pytest

from tests.conversion.rewriting import VENDORS, findings, rewritten, run, said

TARGETS = [*VENDORS, "portable"]
FLASH = "import torch\nfrom flash_attn import flash_attn_func\n"
SDPA = "torch.nn.functional.scaled_dot_product_attention"
PLAIN = (
    f"{SDPA}(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), enable_gqa=q.size(2) != k.size(2))"
    ".transpose(1, 2).contiguous()"
)


def similar(source: str, to: str = "portable") -> str:
    return rewritten(source, to, "similar")


def one(line: str, to: str, head: str = "import torch\nimport torch.nn.functional as F\n") -> str:
    """The converted form of one line."""
    return similar(f"{head}{line}\n", to).removeprefix(head).removesuffix("\n")


def remarks(source: str, to: str = "portable") -> list[tuple[str, str]]:
    return [(kind, text) for _, kind, text in said(source, to, "similar", rule="TF730")]


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("y = F.interpolate(x, size=(4, 4))", id="another use of the function is fine"),
        pytest.param(
            "y = F.interpolate(x, scale_factor=None, size=4)", id="an argument at its default is not given"
        ),
        pytest.param("y = F.smooth_l1_loss(a, b)", id="the equivalent itself"),
        pytest.param("def fmax(a, b): return a\ny = fmax(a, b)", id="a function of one's own"),
        pytest.param(
            "y = [F for F in (a, b)][0].huber_loss(a, b)", id="a name that means something else there"
        ),
        pytest.param("'torch.fmax(a, b)'", id="text"),
        pytest.param("y = numpy.fmax(a, b)", id="another library's"),
        pytest.param("kind = torch.optim.SGD", id="a class that is not called"),
        pytest.param("class Mine(torch.optim.SGD): pass", id="a base class"),
        pytest.param("y = torch.fmax(a, b)  # ferry: ignore[TF730]", id="silenced"),
    ],
)
def test_noop(line: str) -> None:
    assert one(line, "ascend") == line


def test_nothing_without_the_option() -> None:
    source = f"{FLASH}y = flash_attn_func(q, k, v)\n"
    assert rewritten(source, "portable") == source


@pytest.mark.parametrize(
    ("line", "after"),
    [
        pytest.param("y = torch.fmax(a, b)", "y = torch.where((a >= b) | b.isnan(), a, b)", id="names"),
        pytest.param(
            "y = torch.fmax(a, other=b)", "y = torch.where((a >= b) | b.isnan(), a, b)", id="keyword"
        ),
        pytest.param(
            "y = torch.fmax(self.a, b[i + 1])",
            "y = torch.where((self.a >= b[i + 1]) | b[i + 1].isnan(), self.a, b[i + 1])",
            id="attribute and place in a list",
        ),
        pytest.param(
            "y = torch.fmax(f(a), b)",
            "y = (lambda input, other: torch.where((input >= other) | other.isnan(), input, other))(f(a), b)",
            id="what is evaluated once stays so",
        ),
        pytest.param(
            "y = torch.hypot(a + 1, f(b))",
            "y = torch.sqrt((a + 1).square() + f(b).square())",
            id="operand in parentheses",
        ),
        pytest.param(
            "y = torch.hypot(other=f(b), input=g(a))",
            "y = (lambda input, other: torch.sqrt(input.square() + other.square()))(other=f(b), input=g(a))",
            id="the order of evaluation stays",
        ),
        pytest.param(
            "y = F.huber_loss(a, b, delta=2.0) + 1",
            "y = (F.smooth_l1_loss(a, b, beta=2.0) * 2.0) + 1",
            id="the whole in parentheses",
        ),
        pytest.param(
            "y = F.huber_loss(a, b, delta=2.0)",
            "y = F.smooth_l1_loss(a, b, beta=2.0) * 2.0",
            id="no parentheses",
        ),
        pytest.param(
            "y = F.huber_loss(a, b, 'sum')", "y = F.smooth_l1_loss(a, b, reduction='sum')", id="optional"
        ),
        pytest.param(
            "y = F.huber_loss(model(x.cuda()), y.cuda())",
            "y = F.smooth_l1_loss(model(x.npu()), y.npu())",
            id="other rules edit inside the arguments",
        ),
        pytest.param(
            "y = F.huber_loss(torch.fmax(a, b), f(torch.fmin(a, b)))",
            "y = F.smooth_l1_loss(torch.where((a >= b) | b.isnan(), a, b), f(torch.where((a <= b) | b.isnan(), a, b)))",
            id="one inside the other",
        ),
        pytest.param(
            "y = F.huber_loss(\n    a,\n    b  # target\n)",
            "y = (lambda input, target: F.smooth_l1_loss(input, target))(\n    a,\n    b  # target\n)",
            id="a comment stays",
        ),
        pytest.param(
            "y = F.huber_loss(\n    a\n    + c,\n    b,\n)",
            "y = F.smooth_l1_loss(a\n    + c, b)",
            id="several lines",
        ),
        pytest.param(
            "y = F.huber_loss(a, b, reduction=(r := f()))",
            "y = F.smooth_l1_loss(a, b, reduction=(r := f()))",
            id="an assignment inside",
        ),
        pytest.param(
            "y = F.interpolate(x, None, 2, 'bilinear')",
            "y = F.interpolate(x, size=tuple(int(n * 2) for n in x.shape[2:]), mode='bilinear')",
            id="literal factor",
        ),
        pytest.param("loss = torch.nn.HuberLoss()", "loss = torch.nn.SmoothL1Loss()", id="no arguments"),
    ],
)
def test_operators(line: str, after: str) -> None:
    assert one(line, "ascend") == after


@pytest.mark.parametrize(
    ("to", "call", "after"),
    [
        ("ascend", "SGD(p(), 0.1, momentum=0.9)", "torch_npu.optim.NpuFusedSGD(p(), 0.1, momentum=0.9)"),
        ("ascend", "SGD(p(), fused=True)", "torch_npu.optim.NpuFusedSGD(p(), lr=0.001)"),
        (
            "ascend",
            "AdamW(p(), lr, foreach=f(), eps=1e-4)",
            "torch_npu.optim.NpuFusedAdamW(p(), lr, eps=1e-4)",
        ),
        ("ascend", "Adam(p(), maximize=False)", "torch_npu.optim.NpuFusedAdam(p())"),
        (
            "cambricon",
            "Adam(p(), 0.1, (0.9, 0.9), 1e-8)",
            "torch_mlu.optimizers.FusedAdam(p(), 0.1, betas=(0.9, 0.9), eps=1e-8, adam_w_mode=False)",
        ),
        ("cambricon", "AdamW(p(), lr=0.1)", "torch_mlu.optimizers.FusedAdam(p(), lr=0.1, weight_decay=0.01)"),
        (
            "cambricon",
            "SGD(\n    p(),  # all\n)",
            "torch_mlu.optimizers.FusedSGD(\n    p(), lr=0.001,  # all\n)",
        ),
        ("ascend", "SGD(foreach=True, params=p, lr=1)", "torch_npu.optim.NpuFusedSGD(params=p, lr=1)"),
        (
            "ascend",
            "SGD(\n    p,\n    lr=1,  # rate\n    fused=True,  # fast\n    momentum=0.9,\n)",
            "torch_npu.optim.NpuFusedSGD(\n    p,\n    lr=1,  # rate\n    # fast\n    momentum=0.9,\n)",
        ),
        (
            "ascend",
            "SGD(fused=True, foreach=None, params=p, lr=1, maximize=False)",
            "torch_npu.optim.NpuFusedSGD(params=p, lr=1)",
        ),
        (
            "ascend",
            "SGD(\n    p,\n    lr=1,  # rate\n    fused=True, foreach=None)",
            "torch_npu.optim.NpuFusedSGD(\n    p,\n    lr=1,  # rate\n    )",
        ),
        ("ascend", "SGD((p), 0.1)", "torch_npu.optim.NpuFusedSGD((p), 0.1)"),
        (
            "ascend",
            "SGD(\n    p(),  # all\n    fused=True)",
            "torch_npu.optim.NpuFusedSGD(\n    p(), lr=0.001,  # all\n    )",
        ),
        ("tecorigin", "Adam(p(), 0.1)", "torch_sdaa.optim.FusedAdam(p(), 0.1)"),
        ("moorethreads", "AdamW(p(), 0.1, fused=True)", "torch_musa.optim.FusedAdamW(p(), 0.1)"),
        ("intel", "AdamW(p(), 0.1, fused=True)", "torch.optim.AdamW(p(), 0.1, fused=True)"),
        ("portable", "SGD(p(), 0.1)", "torch.optim.SGD(p(), 0.1)"),
    ],
)
def test_optimizers(to: str, call: str, after: str) -> None:
    assert one(f"o = torch.optim.{call}", to) == f"o = {after}"


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        ("SGD(p, **settings)", "not all written out"),
        ("SGD(*everything)", "not all written out"),
        ("SGD(p, maximize=True)", "`maximize` has no place"),
        ("SGD(p, 0.1, newest=1)", "`newest` is unknown"),
        ("Adam(p, maximize=flag)", "`maximize` has no place"),
        ("SGD((p), 0.1, fused=True)", "its own parentheses"),
        (
            "SGD(p, 0.1,  # rate\n    fused=True  # fast\n    , momentum=0.9)",
            "between an argument and its comma",
        ),
    ],
)
def test_an_optimizer_that_is_not_certain_stays(call: str, reason: str) -> None:
    source = f"import torch\no = torch.optim.{call}\n"
    assert similar(source, "ascend") == source
    (finding,) = findings(source, "ascend", "similar", rule="TF730")
    assert finding.kind.value == "info"
    assert reason in finding.message.en


def test_the_plugin_is_imported_where_its_names_are_written() -> None:
    text = run("import torch\no = torch.optim.SGD(p, 0.1)\n", "ascend", "similar").new_text
    assert text == "import torch\nimport torch_npu\no = torch_npu.optim.NpuFusedSGD(p, 0.1)\n"


def test_a_library_goes_with_its_last_call() -> None:
    source = f"{FLASH}\ndef f(q, k, v):\n    return flash_attn_func(q, k, v)\n"
    assert similar(source) == f"import torch\n\ndef f(q, k, v):\n    return {PLAIN}\n"
    assert [finding.kind.value for finding in run(source, "portable", "similar").findings].count("todo") == 0


def test_a_library_that_was_imported_whole_goes_too() -> None:
    source = "import torch\nimport flash_attn\ny = flash_attn.flash_attn_func(q, k, v)\n"
    assert similar(source) == f"import torch\ny = {PLAIN}\n"


def test_an_equivalent_of_the_same_name() -> None:
    source = (
        "import torch\nfrom apex.parallel import DistributedDataParallel\nm = DistributedDataParallel(m)\n"
    )
    assert similar(source) == "import torch\nm = torch.nn.parallel.DistributedDataParallel(m)\n"


def test_only_what_is_unused_goes() -> None:
    source = "import torch\nfrom flash_attn import flash_attn_func, other\ny = flash_attn_func(q, k, v)\n"
    assert similar(source) == f"import torch\nfrom flash_attn import other\ny = {PLAIN}\n"


def test_a_use_that_is_no_call_keeps_the_import() -> None:
    source = f"{FLASH}y = flash_attn_func(q, k, v)\nz = partial(flash_attn_func, causal=True)\n"
    assert similar(source) == f"{FLASH}y = {PLAIN}\nz = partial(flash_attn_func, causal=True)\n"
    assert ("todo", "flash_attn_func") in remarks(source)


def test_an_import_that_may_fail_stays() -> None:
    source = "import torch\ntry:\n    from flash_attn import flash_attn_func\nexcept ImportError:\n    pass\n"
    assert similar(f"{source}y = flash_attn_func(q, k, v)\n") == f"{source}y = {PLAIN}\n"


def test_the_only_statement_of_a_block() -> None:
    source = (
        "import torch\nif fast:\n    from flash_attn import flash_attn_func\ny = flash_attn_func(q, k, v)\n"
    )
    assert similar(source) == f"import torch\nif fast:\n    pass\ny = {PLAIN}\n"


def test_torch_is_imported_where_it_is_missing() -> None:
    source = "from flash_attn import flash_attn_func\ny = flash_attn_func(q, k, v)\n"
    assert similar(source) == f"import torch\ny = {PLAIN}\n"
    source = "from torch.nn.functional import huber_loss  # a loss\ny = huber_loss(a, b)\n"
    expected = "from torch.nn.functional import huber_loss; import torch  # a loss\n"
    assert similar(source, "ascend") == f"{expected}y = torch.nn.functional.smooth_l1_loss(a, b)\n"
    source = "def f():\n    from torch.nn.functional import huber_loss\n    return huber_loss(a, b)\n"
    assert similar(source, "ascend") == source
    assert "not imported here" in findings(source, "ascend", "similar", rule="TF730")[0].message.en


def test_names_are_written_as_the_module_writes_them() -> None:
    head = "import torch as t\nfrom torch import nn\n"
    call = "nn.functional.huber_loss(a, b)"
    assert one(call, "ascend", head) == "nn.functional.smooth_l1_loss(a, b)"
    assert one("t.fmax(a, b)", "ascend", head) == "t.where((a >= b) | b.isnan(), a, b)"
    head = "import torch\nfrom torch.nn.functional import huber_loss as loss\n"
    assert one("loss(a, b)", "ascend", head) == "torch.nn.functional.smooth_l1_loss(a, b)"


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("@torch.jit.script\ndef f(a, b):\n    return torch.fmax(a + 1, b)\n", "compiled by torch.jit"),
        ("y = torch.hypot(x, 2.0)\n", "`other` is a constant"),
        ("y = torch.fmax(a, b, out=c)\n", "`out` is unknown"),
    ],
)
def test_what_would_not_run(source: str, reason: str) -> None:
    source = f"import torch\n{source}"
    assert similar(source, "ascend") == source
    messages = [finding.message.en for finding in findings(source, "ascend", "similar", rule="TF730")]
    assert len(messages) == 1 and reason in messages[0]


def test_a_scripted_function_keeps_what_it_can_compile() -> None:
    source = "import torch\n@torch.jit.script\ndef f(a, b):\n    return torch.fmax(a, b)\n"
    assert "torch.where((a >= b) | b.isnan(), a, b)" in similar(source, "ascend")


def test_not_inside_a_string() -> None:
    source = 'import torch\nprint(f"{torch.fmax(a, b)}")\n'
    assert similar(source, "ascend") == source
    assert remarks(source, "ascend") == [("risk", "torch.fmax(a, b)")]


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        ("flash_attn_func(q, k, v, window_size=(4, 0))", "`window_size` has no place"),
        ("flash_attn_func(q, k, v, 0.0, None, True, (4, 0))", "more positional arguments"),
        ("flash_attn_func(*qkv)", "not all written out"),
        ("flash_attn_func(q, k)", "`v` is missing"),
    ],
)
def test_a_library_call_that_is_not_certain_is_for_the_user(call: str, reason: str) -> None:
    source = f"{FLASH}y = {call}\n"
    assert similar(source) == source
    todo = [
        item.message.en
        for item in findings(source, "portable", "similar", rule="TF730")
        if item.before == call
    ]
    assert len(todo) == 1 and reason in todo[0]


def test_arguments_that_change_nothing() -> None:
    call = "flash_attn_func(q, k, v, window_size=(-1, -1), deterministic=flag)"
    assert similar(f"{FLASH}y = {call}\n") == f"import torch\ny = {PLAIN}\n"


@pytest.mark.parametrize(
    ("to", "call", "kind"),
    [
        ("ascend", "torch.nn.LSTM(4, 4, dropout=0.1)", "unsupported"),
        ("ascend", "torch.nn.RNN(*sizes)", "unsupported"),
        ("ascend", "torch.nn.functional.interpolate(x, scale_factor=1.5)", "unsupported"),
        ("ascend", "torch.nn.GELU()", "risk"),
        ("ascend", "torch.lgamma(x)", "risk"),
        ("moorethreads", "torch.matrix_exp(x)", "unsupported"),
    ],
)
def test_without_an_equivalent_it_is_said(to: str, call: str, kind: str) -> None:
    source = f"import torch\ny = {call}\n"
    assert similar(source, to) == source
    assert remarks(source, to) == [(kind, call)]


@pytest.mark.parametrize(
    "call", ["torch.nn.LSTM(4, 4, dropout=0.0)", "torch.nn.LSTM(**sizes)", "torch.nn.GELU('tanh')"]
)
def test_without_a_reason_nothing_is_said(call: str) -> None:
    assert remarks(f"import torch\ny = {call}\n", "ascend") == []


def test_a_name_alone() -> None:
    source = "import torch\nfrom apex.contrib.clip_grad import clip_grad_norm_\nclip_grad_norm_(p, 1.0)\n"
    expected = "import torch\nfrom torch.nn.utils import clip_grad_norm_\nclip_grad_norm_(p, 1.0)\n"
    for to in TARGETS:
        assert similar(source, to) == expected


def test_what_may_differ_is_a_risk() -> None:
    kinds = remarks(f"{FLASH}y = flash_attn_func(q, k, v)\n")
    assert ("risk", "flash_attn_func(q, k, v)") in kinds


EVERYTHING = """
import torch
import torch.nn.functional as F
from torch import nn, optim
from flash_attn import flash_attn_func, flash_attn_qkvpacked_func
from flash_attn.layers.rotary import apply_rotary_emb
import xformers.ops as xops
from apex.parallel import DistributedDataParallel as DDP, convert_syncbn_model
from apex.contrib.xentropy import SoftmaxCrossEntropyLoss

class Attention(nn.Module):
    def forward(self, x, cos, sin):
        q, k, v = xops.unbind(self.qkv(x), dim=2)
        q = apply_rotary_emb(q, cos, sin)
        if self.packed:
            return flash_attn_qkvpacked_func(self.qkv(x), self.p if self.training else 0.0, causal=self.causal)
        a = xops.memory_efficient_attention(q, k, v, attn_bias=xops.LowerTriangularMask())
        return a + flash_attn_func(q, k, v.cuda(), dropout_p=self.p if self.training else 0.0, causal=True)

model = DDP(convert_syncbn_model(Attention().cuda()), delay_allreduce=True)
optimizer = optim.AdamW(model.parameters(), lr=1e-3, fused=True)
loss = SoftmaxCrossEntropyLoss.apply(x, y, padding_idx=-1)
"""


@pytest.mark.parametrize("to", TARGETS)
def test_a_program_for_every_target(to: str) -> None:
    """The engine itself checks that the result parses and that a second conversion changes nothing."""
    text = similar(EVERYTHING, to)
    assert not any(library in text for library in ("flash_attn", "xops", "apex"))


def test_line_endings_stay() -> None:
    source = f"{FLASH}y = flash_attn_func(q,\n  k, v)\n".replace("\n", "\r\n")
    assert run(source, "portable", "similar").new_text == f"import torch\r\ny = {PLAIN}\r\n"


def test_a_fused_optimizer_is_for_a_model_on_the_device() -> None:
    made = "from torch.optim import SGD\nmodel = Net()\n{move}optimizer = SGD(model.parameters(), 0.1)\n"
    assert "NpuFusedSGD" not in rewritten(made.format(move=""), "ascend", "similar")
    assert "NpuFusedSGD" in rewritten(made.format(move="model.cuda()\n"), "ascend", "similar")
    later = "model, optimizer = accelerator.prepare(model.to('cpu'), optimizer)\n"
    assert "NpuFusedSGD" not in rewritten(made.format(move="") + later, "ascend", "similar")


def test_a_model_that_one_function_leaves_on_the_cpu() -> None:
    make = "    model = Net()\n{move}    return torch.optim.SGD(model.parameters(), 0.1)\n"
    source = "import torch\ndef on_cpu():\n" + make.format(move="")
    source += "def on_gpu():\n" + make.format(move="    model.cuda()\n")
    after = rewritten(source, "ascend", "similar")
    assert after.count("NpuFusedSGD") == 1
    assert "NpuFusedSGD" in after.partition("on_gpu")[2]
