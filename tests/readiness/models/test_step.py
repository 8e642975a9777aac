"""A model of a user's file, captured in this process."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from torchferry.errors import FerryError
from torchferry.readiness.model import Capture, Phase
from torchferry.readiness.models.request import ModelRequest, checked
from torchferry.readiness.models.step import capture_here

NETS = """
from dataclasses import dataclass

import torch
from torch import Tensor, nn


class Convolutions(nn.Module):
    def __init__(self, classes=4):
        super().__init__()
        rate = torch.linspace(0, 0.4, 3)[1].item()
        self.conv, self.norm = nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8)
        self.drop, self.head = nn.Dropout(rate), nn.Linear(8, classes)

    def forward(self, x):
        return self.head(self.drop(self.norm(self.conv(x)).relu().mean((2, 3))))


class Words(nn.Module):
    def __init__(self, tokens=50, size=16):
        super().__init__()
        self.embed = nn.Embedding(tokens, size)
        self.layer = nn.TransformerEncoderLayer(size, 2, 32, batch_first=True)
        self.head = nn.Linear(size, tokens, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, ids, mask=None):
        return self.head(self.layer(self.embed(ids), src_key_padding_mask=mask))


@dataclass
class Output:
    loss: Tensor
    scores: Tensor


class OwnLoss(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.LazyLinear(4)

    def forward(self, batch, labels):
        scores = self.head(batch["x"])
        return Output(nn.functional.cross_entropy(scores, labels), {"scores": [scores]})


class Nested(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.other = nn.Linear(4, 4), nn.Linear(4, 2)

    def forward(self, images):
        x = torch.stack(images)
        return {"a": (self.one(x), 3), "b": [self.other(x)]}


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.LSTM(4, 4, 2, dropout=0.1)

    def forward(self, x):
        return self.layers(x)[0]


class Chooses(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(4, 4)

    def forward(self, x):
        y = self.head(x)
        return y[y > 0]  # as many as there are


def squared(output, *inputs):
    return output.square().mean()


ready = Nested()
"""


@pytest.fixture
def nets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "nets.py").write_text(NETS, "utf-8")
    return "nets.py"


def captured(factory: str, *inputs: str, **choices: Any) -> Capture:
    return capture_here(checked(ModelRequest(factory, inputs, **choices)))


def calls(capture: Capture, phase: Phase | None = None) -> Counter[str]:
    found: Counter[str] = Counter()
    for use in capture.uses:
        if phase in (None, use.site.phase) and not use.site.inside:
            found[use.operator] += use.calls
    return found


def everything(capture: Capture) -> Counter[Any]:
    found: Counter[Any] = Counter()
    for use in capture.uses:
        found[use.signature, use.site, use.expanded] += use.calls
    return found


def test_a_forward_pass_is_that_of_inference(nets: str) -> None:
    capture = captured(f"{nets}:Convolutions", "2x3x8x8", init="classes=3")
    assert calls(capture)["aten::convolution"] == 1
    assert {use.site.phase for use in capture.uses} == {Phase.FORWARD}
    assert "aten::native_dropout" not in calls(capture)
    assert [use.signature.outputs[0].shape for use in capture.uses if use.operator == "aten::addmm"] == [
        (2, 3)
    ]
    assert (capture.origin, capture.device, capture.steps) == ("model", "cpu", 0)


def test_a_training_step_goes_back_and_steps(nets: str) -> None:
    capture = captured(f"{nets}:Convolutions", "2x3x8x8", backward=True)
    assert calls(capture, Phase.BACKWARD)["aten::convolution_backward"] == 1
    assert calls(capture, Phase.OPTIMIZER) == Counter({"aten::_foreach_add_.List": 1})
    assert calls(capture)["aten::native_dropout"] == 1
    assert capture.steps == 1
    convolution = next(use for use in capture.uses if use.operator == "aten::convolution")
    assert (convolution.site.module, convolution.site.place) == ("conv", "nets.py:16")


def test_the_backward_pass_begins_at_all_outputs_and_adds_no_loss(nets: str) -> None:
    capture = captured(f"{nets}:Nested", "list(4x, 4x)", backward=True)
    assert calls(capture, Phase.BACKWARD)["aten::mm"] == 2
    assert not {"aten::sum", "aten::mean"} & set(calls(capture))


def test_a_loss_of_the_model_or_the_user_is_where_it_begins(nets: str) -> None:
    capture = captured(f"{nets}:OwnLoss", "batch.x=3x5", "labels=3x:int64", backward=True)
    assert calls(capture)["aten::nll_loss_backward"] == 1
    capture = captured(f"{nets}:Words", "2x5:int64", backward=True, loss="nets.py:squared")
    assert calls(capture)["aten::mean"] == 1


def test_lazy_parameters_are_made_before_the_capture(nets: str) -> None:
    capture = captured(f"{nets}:OwnLoss", "batch.x=3x5", "labels=3x:int64")
    assert calls(capture)["aten::addmm"] == 1


def test_a_model_that_is_there_already_is_taken(nets: str) -> None:
    assert calls(captured(f"{nets}:ready", "list(4x, 4x)"))["aten::addmm"] == 2
    with pytest.raises(FerryError, match="leave --init out"):
        captured(f"{nets}:ready", init="x=1")


def test_autocast_scales_the_loss_in_float16(nets: str) -> None:
    capture = captured(f"{nets}:Convolutions", "2x3x8x8", backward=True, amp="float16")
    assert calls(capture, Phase.OPTIMIZER)["aten::_amp_foreach_non_finite_check_and_unscale_"] == 1
    dtypes = {use.operator: use.signature.dtypes for use in capture.uses}
    assert dtypes["aten::convolution"] == ["float16"]
    assert capture.steps == 1
    assert capture.notes == ("cpu_autocast",)
    plain = captured(f"{nets}:Convolutions", "2x3x8x8", backward=True, amp="bfloat16")
    assert "aten::_amp_update_scale_" not in calls(plain)


@pytest.mark.parametrize("amp", ["", "float16"])
@pytest.mark.parametrize("optimizer", ["SGD", "AdamW"])
@pytest.mark.parametrize(
    ("name", "inputs"),
    [
        ("Convolutions", ["2x3x8x8"]),
        ("Words", ["2x5:int64", "mask=2x5:bool:zeros"]),
        ("OwnLoss", ["0.x=3x5", "1=3x:int64"]),
    ],
)
def test_without_contents_the_same_is_captured(
    nets: str, name: str, inputs: list[str], optimizer: str, amp: str
) -> None:
    factory = f"{nets}:{name}"
    real = captured(factory, *inputs, backward=True, optimizer=optimizer, amp=amp)
    fake = captured(factory, *inputs, backward=True, optimizer=optimizer, amp=amp, fake=True)
    assert everything(fake) == everything(real)
    assert fake.steps == real.steps == 1
    assert "fake" in fake.notes and fake.seconds == 0 and not any(use.seconds for use in fake.uses)


def test_without_contents_recurrent_layers_are_captured_as_well(nets: str) -> None:
    """Their gradients have other strides in PyTorch's formula than the CPU's kernel gives them."""
    real = captured(f"{nets}:Recurrent", "5x2x4", backward=True)
    fake = captured(f"{nets}:Recurrent", "5x2x4", backward=True, fake=True)
    assert calls(fake)["aten::lstm.input"] == 1
    for phase in (Phase.FORWARD, Phase.OPTIMIZER):
        assert calls(fake, phase) == calls(real, phase)


def test_without_contents_a_model_may_be_larger_than_memory(nets: str) -> None:
    capture = captured(
        f"{nets}:Words", "2x5:int64", init="tokens=1_000_000, size=65536", backward=True, fake=True
    )
    assert capture.steps == 1
    assert max(spec.bytes for use in capture.uses for spec in use.signature.inputs) == 4 * 65536 * 1_000_000


def test_what_needs_numbers_is_named_with_its_line(nets: str) -> None:
    assert calls(captured(f"{nets}:Chooses", "2x4"))["aten::index.Tensor"] == 1
    with pytest.raises(
        FerryError, match=r"nets\.py:\d+: aten\.\S+ needs the numbers in a tensor.*without --fake"
    ):
        captured(f"{nets}:Chooses", "2x4", fake=True)


def test_scripted_code_is_seen_and_noted(nets: str) -> None:
    Path(nets).write_text(
        NETS + "\n\ndef scripted():\n    return torch.jit.script(Convolutions())\n", "utf-8"
    )
    capture = captured(f"{nets}:scripted", "2x3x8x8")
    assert calls(capture)["aten::convolution"] == 1
    assert capture.notes == ("scripted",)


@pytest.mark.parametrize(
    ("factory", "inputs", "choices", "said"),
    [
        ("nets.py:Nope", [], {}, "nets.py has no Nope"),
        ("nets.py:Worbs", [], {}, "did you mean Words"),
        ("absent.py:Net", [], {}, "no such file: absent.py"),
        ("no_such_module_here:Net", [], {}, "No module named 'no_such_module_here'"),
        ("broken.py:Net", [], {}, r"importing broken.py failed: ZeroDivisionError: division by zero \(broken.py:1\)"),
        ("unreadable.py:Net", [], {}, r"SyntaxError: .*\(unreadable.py:2\)"),
        ("exits.py:Net", [], {}, r"importing exits.py failed: SystemExit: 3 \(exits.py:1\)"),
        ("nets.py:Words", [], {"init": "size='a'"}, "--init is for Words"),
        ("nets.py:squared", [], {}, "squared.*failed: TypeError"),
        ("nets.py:NETS", [], {}, "has no NETS"),
        ("nets.py:Words", ["2x5:int64:ints(0,1000)"], {}, r"forward pass failed: IndexError.*nets.py:\d+"),
        ("nets.py:Words", ["2x5:int64", "4x4", "4x4"], {}, r"--input is for forward\(ids, mask=None\)"),
        ("nets.py:Words", ["2x5:int64"], {"backward": True, "optimizer": "Adan"}, "torch.optim has no such"),
        ("nets.py:Words", ["2x5:int64"], {"backward": True, "loss": "nets.py:ready"}, "--loss nets.py:ready"),
    ],
)  # fmt: skip
def test_what_fails_is_told_in_one_line(
    nets: str, factory: str, inputs: list[str], choices: dict[str, Any], said: str
) -> None:
    Path("broken.py").write_text("1 / 0\n", "utf-8")
    Path("unreadable.py").write_text("x = 1\ndef\n", "utf-8")
    Path("exits.py").write_text("raise SystemExit(3)\n", "utf-8")
    with pytest.raises(FerryError, match=said) as error:
        captured(factory, *inputs, **choices)
    assert "\n" not in str(error.value)
