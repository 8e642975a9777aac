"""Cards of a vendor beside that of the typical server, as its tools, its adapter and its documents describe them."""

from __future__ import annotations

from vendor_data import toml

_HAMI = "Project-HAMi/HAMi 00160eb971c8, charts/hami/templates/scheduler/device-configmap.yaml"
# Ascend/pytorch, torch_npu/csrc/core/npu/NpuVariables.cpp: IsBF16Supported, from the 910B1 on; autocast_utils.py.
# The error is that of aclnnCast on a 310P3: hiyouga/LlamaFactory, issue 7522.
_WITHOUT_BFLOAT16: dict[str, toml.Value] = {
    "without": ["bfloat16"],
    "without_message": "EZ1001: self not implemented for DT_BFLOAT16, should be in dtype support list",
    "amp_dtypes": ["float16"],
}
# Cambricon/torch_mlu, torch_mlu/mlu/__init__.py: is_bf16_supported, from the MLU500 series on; autocast takes it.
_MLU370: dict[str, toml.Value] = {"without": ["bfloat16"]}

CARDS: dict[str, list[dict[str, toml.Value]]] = {
    "ascend": [
        {
            "name": "Ascend910A",
            "memory": "32GiB",
            "count": 8,
            **_WITHOUT_BFLOAT16,
            # CANN, HCCL performance tester, restrictions: Atlas training products; so says the first porting guide
            "ranks": ["1", "2", "4", "8"],
            "source": f"{_HAMI}; CANN 9.0, HCCL Performance Tester, restrictions",
        },
        {"name": "Ascend310P3", "memory": "21527MiB", **_WITHOUT_BFLOAT16, "source": _HAMI},
        {"name": "Ascend910B3", "memory": "64GiB", "source": _HAMI},
        {"name": "Ascend910B4", "memory": "32GiB", "source": _HAMI},
    ],
    "cambricon": [
        {
            "name": "MLU370-X4",
            "memory": "23308MiB",
            **_MLU370,
            "source": "PaddlePaddle documentation, installation for MLU: cnmon on MLU370-X4",
        },
        # two chips on a card, each of them a device, with half of its 48 GB
        {
            "name": "MLU370-X8",
            "memory": "24GiB",
            "count": 16,
            **_MLU370,
            "source": "cambricon.com, MLU370-X8",
        },
    ],
}
