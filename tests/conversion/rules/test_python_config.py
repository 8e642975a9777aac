"""TF815: settings of configurations written in Python."""

from __future__ import annotations

import pytest

from tests.conversion.rewriting import VENDORS, rewritten, said, target


@pytest.mark.parametrize(
    "source",
    [
        pytest.param(
            "def setup(cudnn_benchmark=False):\n    run(gpu_ids=[0], cudnn_benchmark=True)\n", id="a program"
        ),
        pytest.param("if cfg.get('cudnn_benchmark'):\n    x = 1\n", id="a reader of the setting"),
        pytest.param("gpu_ids = [0, 1]\n", id="a module of settings"),
        pytest.param("_base_ = 'a.py'\noptim_wrapper = dict(type='OptimWrapper')\n", id="no mixed precision"),
        pytest.param("custom_imports = dict(imports=['mmdet.models', 'os'])\n", id="harmless imports"),
    ],
)
def test_noop(source: str) -> None:
    assert rewritten(source) == source
    assert said(source, rule="TF815") == []


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("_base_ = 'a.py'\nenv_cfg = dict(cudnn_benchmark=True)\n", ("info", "cudnn_benchmark=True")),
        ("_base_ = 'a.py'\ncudnn_benchmark = True\n", ("info", "cudnn_benchmark = True")),
        ("_base_ = 'a.py'\ngpu_ids = range(2)\n", ("info", "gpu_ids = range(2)")),
        (
            "custom_hooks = [dict(type='ProfilerHook', activity_with_cuda=True)]\n",
            ("todo", "activity_with_cuda=True"),
        ),
        ("custom_imports = dict(imports=['a.b', 'flash_attn'])\n", ("todo", "'flash_attn'")),
        ("_base_ = 'a.py'\ndevice = '{{ $DEVICE:cuda }}'\n", ("todo", "'{{ $DEVICE:cuda }}'")),
    ],
)
def test_what_no_other_rule_sees_is_said(source: str, expected: tuple[str, str]) -> None:
    found = said(source, rule="TF815")
    assert [(kind, before) for _, kind, before in found] == [expected]


@pytest.mark.parametrize(
    "source",
    [
        "optim_wrapper = dict(type='AmpOptimWrapper', loss_scale='dynamic')\n",
        "from mmengine.optim import AmpOptimWrapper\noptim_wrapper = dict(type=AmpOptimWrapper)\n",
    ],
)
def test_mixed_precision_of_mmengine_is_reported_where_mmengine_has_none(source: str) -> None:
    without = {to for to in VENDORS if said(source, to, rule="TF815")}
    assert {target(to).device.word for to in VENDORS if to not in without} == {"npu", "mlu", "musa"}
    assert without
