"""TF302: NVIDIA apex."""

from __future__ import annotations

import pytest

from tests.conversion.rewriting import VENDORS, findings, rewritten, run, said, vendor
from torchferry.conversion.target import replacement_of


@pytest.mark.parametrize(
    "source",
    [
        pytest.param("# from apex import amp\n", id="a comment"),
        pytest.param("print('pip install apex')\n", id="a message"),
        pytest.param("from .apex import amp\n", id="own module"),
        pytest.param("from mylib.apex import amp\n", id="another library's"),
        pytest.param("apex = 1\nuse(apex)\n", id="a variable"),
        pytest.param("def f(apex):\n    return apex.amp\n", id="a parameter"),
        pytest.param("parser.add_argument('--apex', help='use apex')\n", id="a flag"),
        pytest.param("from apexpy import Apex\n", id="a longer name"),
    ],
)
def test_noop(source: str) -> None:
    assert rewritten(source) == source
    assert said(source, rule="TF302") == []


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "from apex.normalization import FusedLayerNorm\nFusedLayerNorm(8)\n",
            "from torch.nn import LayerNorm as FusedLayerNorm\nFusedLayerNorm(8)\n",
        ),
        (
            "from apex.normalization import FusedLayerNorm as LN\nLN(8)\n",
            "from torch.nn import LayerNorm as LN\nLN(8)\n",
        ),
        (
            "import torch\nimport apex\nn = apex.normalization.FusedLayerNorm(8)\n",
            "import torch\nimport apex\nn = torch.nn.LayerNorm(8)\n",
        ),
        (
            "import apex\no = apex.optimizers.FusedSGD(p)\n",
            "import apex\no = torch_npu.optim.NpuFusedSGD(p)\n",
        ),
        (
            "from apex.optimizers import FusedSGD\no = FusedSGD(p, lr=1)\n",
            "from torch_npu.optim import NpuFusedSGD as FusedSGD\no = FusedSGD(p, lr=1)\n",
        ),
        (
            "from apex.optimizers import FusedAdam\no = FusedAdam(p, lr=1)\n",
            "from torch_npu.optim import NpuFusedAdamW as FusedAdam\no = FusedAdam(p, lr=1, weight_decay=0.0)\n",
        ),
        (
            "from apex.optimizers import FusedAdam\no = FusedAdam(p, weight_decay=w)\n",
            "from torch_npu.optim import NpuFusedAdamW as FusedAdam\no = FusedAdam(p, weight_decay=w)\n",
        ),
        (
            "from apex.optimizers import FusedAdam\no = FusedAdam(p, **k)\n",
            "from torch_npu.optim import NpuFusedAdamW as FusedAdam\no = FusedAdam(p, **k)\n",
        ),
        (
            "try:\n    from apex.normalization import FusedLayerNorm as LN\nexcept ImportError:\n    from torch.nn import LayerNorm as LN\n",
            "try:\n    from torch.nn import LayerNorm as LN\nexcept ImportError:\n    from torch.nn import LayerNorm as LN\n",
        ),
    ],
)
def test_rewrites(before: str, after: str) -> None:
    assert rewritten(before) == after


def test_a_replacement_from_torch_needs_torch() -> None:
    text = rewritten("import apex\nn = apex.normalization.FusedLayerNorm(8)\n")
    assert "torch.nn.LayerNorm" not in text or "import torch\n" in text


@pytest.mark.parametrize("name", VENDORS)
@pytest.mark.parametrize(
    "apex",
    ["normalization.FusedLayerNorm", "optimizers.FusedAdam", "optimizers.FusedLAMB", "optimizers.FusedSGD"],
)
def test_every_vendor(name: str, apex: str) -> None:
    module, _, last = apex.rpartition(".")
    source = f"from apex.{module} import {last}\n"
    entry = replacement_of(vendor(name), f"apex.{apex}")
    if entry is not None and entry.automatic:
        new_module, _, new = entry.automatic.rpartition(".")
        renamed = last if new == last else f"{new} as {last}"
        assert rewritten(source, name) == f"from {new_module} import {renamed}\n"
    else:
        assert rewritten(source, name) == source
        assert said(source, name) == [("TF302", "todo", last)]


@pytest.mark.parametrize("name", (*VENDORS, "portable"))
@pytest.mark.parametrize(
    ("source", "place"),
    [
        ("from apex import amp\nmodel = amp.initialize(model)\n", "amp"),
        (
            "from apex.parallel import DistributedDataParallel as DDP\nDDP(m)\n",
            "DistributedDataParallel as DDP",
        ),
        ("import apex\nm = apex.amp.initialize(m)\n", "apex"),
        ("try:\n    from apex import amp\nexcept ImportError:\n    amp = None\n", "amp"),
        ("def f():\n    import apex\n    return apex.amp\n", "apex"),
    ],
)
def test_the_rest_is_reported_once(name: str, source: str, place: str) -> None:
    assert rewritten(source, name) == source
    assert said(source, name, rule="TF302") == [("TF302", "todo", place)]


def test_arguments_that_only_apex_knows() -> None:
    source = "from apex.optimizers import FusedAdam\nFusedAdam(p, adam_w_mode=False)\n"
    assert said(source, rule="TF302") == [
        ("TF302", "info", "FusedAdam"),
        ("TF302", "todo", "adam_w_mode=False"),
    ]
    assert run(source).new_text is None  # with it the result could not run


def test_arguments_that_would_take_another_place() -> None:
    """bias_correction is the third argument of apex's optimizers, and unknown to those of torch"""
    source = "from apex.optimizers import FusedAdam\nFusedAdam(p, 0.1, True, (0.9, 0.99))\n"
    for name in VENDORS:
        has_apex_style = replacement_of(vendor(name), "apex.optimizers.FusedAdam").same_arguments  # type: ignore[union-attr]
        expected = [("TF302", "info", "FusedAdam"), ("TF302", "todo", "True")]
        assert said(source, name, rule="TF302") == ([] if has_apex_style else expected)
        assert (run(source, name).new_text is None) is not has_apex_style


@pytest.mark.parametrize(
    "source",
    [
        "import apex\na = apex.optimizers.FusedAdam(p, capturable=True)\n",
        "from apex.optimizers import FusedAdam as Adam\na = Adam(p, master_weights=True)\n",
        "from apex.optimizers import FusedAdam\na = FusedAdam(p)\nb = FusedAdam(q, set_grad_none=True)\n",
        "from apex.optimizers import FusedLAMB\na = FusedLAMB(p, max_grad_norm=1.0)\n",
    ],
)
def test_one_call_that_does_not_fit_keeps_the_class(source: str) -> None:
    assert run(source).new_text is None


def test_a_drop_in_with_the_arguments_of_apex() -> None:
    source = "from apex.optimizers import FusedAdam\no = FusedAdam(p, 0.1, True, adam_w_mode=False)\n"
    after = source.replace("from apex.optimizers", "from torch_mlu.optimizers")
    assert rewritten(source, "cambricon") == after
    assert said(source, "cambricon", rule="TF302") == []


def test_the_drop_in_decays_weights_like_apex() -> None:
    source = "from apex.optimizers import FusedAdam\no = FusedAdam(p, weight_decay=0.1)\n"
    after = "from torch.optim import AdamW as FusedAdam\no = FusedAdam(p, weight_decay=0.1)\n"
    assert rewritten(source, "tecorigin") == after


def test_message_names_the_vendors_build() -> None:
    (item,) = findings("from apex import amp\n")
    assert "Ascend/apex" in item.message.en


def test_a_method_is_no_name_to_import() -> None:
    """there is no module torch.nn.SyncBatchNorm to import from"""
    source = "from apex.parallel import convert_syncbn_model\nmodel = convert_syncbn_model(model)\n"
    assert rewritten(source, "ascend") == source
    assert ("TF302", "todo", "convert_syncbn_model") in said(source, "ascend")
