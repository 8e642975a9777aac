"""Configurations written in Python, as OpenMMLab has them: values change, nothing is added, what can't change is said."""

from __future__ import annotations

import pytest

from tests.conversion.rewriting import VENDORS, run, target
from torchferry.finding import Kind

DEFAULT_RUNTIME = """\
default_scope = 'mmdet'
env_cfg = dict(
    cudnn_benchmark=False,
    mp_cfg=dict(mp_start_method='fork', opencv_num_threads=0),
    dist_cfg=dict(backend='nccl'),
)
vis_backends = [dict(type='LocalVisBackend')]
"""
INHERITING = """\
_base_ = ['../_base_/models/faster_rcnn.py', '../_base_/default_runtime.py']
device = 'cuda'
gpu_ids = range(2)
dist_params = dict(backend='nccl')
data = dict(samples_per_gpu=2, workers_per_gpu=2)
model = dict(init_cfg=dict(map_location='cuda:0'), data_preprocessor=dict(device='cuda'))
_base_.env_cfg.dist_cfg.backend = 'nccl'
"""
LAZY = """\
from mmengine.config import read_base
from torch.cuda.amp import GradScaler

with read_base():
    from .._base_.default_runtime import *

import torch
scaler = dict(type=GradScaler)
env_cfg.update(dict(dist_cfg=dict(backend='nccl')))
"""
LAZY_BASE = """\
from mmengine.hooks import CheckpointHook
from torch.cuda.amp import GradScaler

hooks = dict(type=CheckpointHook, scaler=GradScaler)
env_cfg = dict(dist_cfg=dict(backend='nccl'))
"""


def after(source: str, to: str = "ascend") -> str:
    return run(source, to).new_text or source


@pytest.mark.parametrize("to", VENDORS)
@pytest.mark.parametrize("source", [DEFAULT_RUNTIME, INHERITING])
def test_values_become_the_targets(source: str, to: str) -> None:
    words = target(to).vendor
    expected = source.replace("'nccl'", f"'{words.dist_backend}'").replace("'cuda", f"'{words.device_type}")
    assert after(source, to) == expected


@pytest.mark.parametrize("source", [LAZY, LAZY_BASE])
def test_names_become_the_targets_and_no_plugin_is_imported(source: str) -> None:
    assert after(source) == source.replace("torch.cuda.amp", "torch.npu.amp").replace("'nccl'", "'hccl'")


@pytest.mark.parametrize("source", [DEFAULT_RUNTIME, INHERITING])
def test_portable_values_can_not_be_written_and_that_is_said(source: str) -> None:
    conversion = run(source, "portable")
    assert conversion.new_text is None
    todo = [item.before for item in conversion.findings if item.kind is Kind.TODO]
    assert len(todo) == source.count("'cuda") + source.count("'nccl'")


def test_a_module_of_settings_that_a_program_imports_is_no_configuration() -> None:
    source = "LAYERS = dict(a=1)\nDEVICE = 'cuda'\n"
    assert "DEVICE = DEVICE_TYPE" in after(source, "portable")
    source = "import torch\nfrom torch import nn\nOPTIONS = dict(type='a')\nNET = nn.Linear(1, 1).cuda()\n"
    assert "import torch_npu" in after(source)
