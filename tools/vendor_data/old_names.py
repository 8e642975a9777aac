"""Makes old_names.toml: names that a vendor's plugin had in its early days, and what they are called today.

Ascend: its PyTorch 1.5 and 1.8 were patched builds of torch with everything under `torch` (the guide "PyTorch network
model porting and training"); today's plugin is Ascend/pytorch 9e73e708a (2026-08-21). What its affinity library and
dumper were has no public successor of the same form; TorchFerry's own has the same arguments.
"""

from __future__ import annotations

from vendor_data import toml

_AFFINITY = (
    "this library went with Ascend's PyTorch 1.x; TorchFerry has it with the same arguments",
    "该库只随昇腾 PyTorch 1.x 提供；TorchFerry 提供参数相同的实现",
)
_FUSED = ("Ascend's fused optimizers are in torch_npu today", "昇腾的融合优化器现位于 torch_npu")
_GUIDE = "Ascend guide for PyTorch 1.5/1.8"
_PLUGIN = "Ascend/pytorch 9e73e708a 2026-08-21"
_OPTIMIZERS = (
    "Adadelta", "Adam", "AdamP", "AdamW", "BertAdam", "Lamb", "RMSprop", "RMSpropTF", "SGD",
)  # fmt: skip


def _row(why: tuple[str, str], source: str, **keys: str) -> dict[str, toml.Value]:
    return {**keys, "why": why[0], "why_zh": why[1], "source": source}


OLD_NAMES: dict[str, list[dict[str, toml.Value]]] = {
    "ascend": [
        *(
            _row(
                _AFFINITY,
                _GUIDE,
                name=f"torch.contrib.npu.optimized_lib.{name}",
                new=f"torchferry.perf.affinity.{name}",
            )
            for name in ("ChannelShuffle", "PreLoader", "fast_rcnn_inference_single_image", "pairwise_iou")
        ),
        *(
            _row(
                _FUSED,
                f"{_PLUGIN}, torch_npu/optim",
                name=f"apex.optimizers.NpuFused{name}",
                new=f"torch_npu.optim.NpuFused{name}",
            )
            for name in _OPTIMIZERS
        ),
        _row(
            (
                "the dumper went with Ascend's PyTorch 1.x; TorchFerry has it with the same arguments",
                "dumper 只随昇腾 PyTorch 1.x 提供；TorchFerry 提供参数相同的实现",
            ),
            _GUIDE,
            name="torch.utils.dumper",
            new="torchferry.accuracy.dumper",
        ),
        *(
            _row(
                (
                    "a function of torch_npu today; the method raises an error there",
                    "现为 torch_npu 的函数；作为方法调用会报错",
                ),
                f"{_PLUGIN}, docs and torch_npu/utils/tensor_methods.py",
                method=name,
                new=f"torch_npu.{name}",
            )
            for name in ("npu_format_cast", "npu_format_cast_")
        ),
        _row(
            ("PyTorch's profiler is told the device by its type", "PyTorch 的 profiler 以设备类型指定设备"),
            "torch 2.13, torch/autograd/profiler.py",
            name="torch.autograd.profiler.profile",
            argument="use_npu",
            write='use_device="npu"',
        ),
        _row(
            (
                "of Ascend's PyTorch 1.x; today `with torch_npu.profiler.profile(on_trace_ready=torch_npu.profiler."
                "tensorboard_trace_handler(path)):`",
                "属于昇腾 PyTorch 1.x；现用 `with torch_npu.profiler.profile(on_trace_ready=torch_npu.profiler."
                "tensorboard_trace_handler(path)):`",
            ),
            f"{_PLUGIN}, torch_npu/profiler/profiler.py",
            name="torch.npu.profile",
        ),
    ]
}


def old_names_toml(name: str) -> str:
    """The text of old_names.toml."""
    sources = [{"name": "Ascend/pytorch", "version": "9e73e708ab93 2026-08-21", "path": "torch_npu/**"}]
    return toml.HEADER + toml.tables("old", OLD_NAMES[name]) + toml.tables("sources", sources)
