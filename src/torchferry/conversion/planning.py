"""What a user asks of a conversion, by the names of the options, and the plan that it comes to."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypedDict

from torchferry.conversion.custom.model import CustomRules
from torchferry.conversion.discover import PYTHON_SUFFIXES
from torchferry.conversion.project import Plan
from torchferry.conversion.rule import all_rules
from torchferry.conversion.settings import AmpForm, Distributed, PassSettings
from torchferry.conversion.target import Target, vendor_target
from torchferry.conversion.targets import PORTABLE, keep_cuda_target, portable_target
from torchferry.errors import FerryError, InputError, VendorError
from torchferry.text import Text, then
from torchferry.vendors.registry import get_vendor, vendor_names

if TYPE_CHECKING:
    from typing_extensions import Unpack

# Changes that are made only when they are asked for -> what `ferry convert --help` says about each.
OPT_INS = {
    "channels_last": Text(
        "Put models and images in channels_last (NHWC), for vendors whose convolutions prefer it",
        "将模型和图像转为 channels_last（NHWC），适用于卷积偏好该布局的厂商",
    ),
    "fixed_shape": Text(
        "Apply --drop-last and --int32-labels, as a vendor's guide recommends",
        "同时启用 --drop-last 和 --int32-labels，与厂商指南的建议一致",
    ),
    "drop_last": Text(
        "Set drop_last=True in training data loaders: one shape, one compilation",
        "在训练数据加载器中设置 drop_last=True：只有一种形状，只编译一次",
    ),
    "int32_labels": Text(
        "Convert class labels to int32, for vendors whose loss kernels require it",
        "将类别标签转为 int32，适用于损失算子有此要求的厂商",
    ),
    "float32_data": Text(
        "Use float32 instead of float64 where the vendor limits float64",
        "在厂商限制 float64 之处改用 float32",
    ),
    "blocking_copies": Text(
        "Copy to the device with non_blocking=False", "以 non_blocking=False 向设备拷贝数据"
    ),
    "drop_cudnn_flags": Text(
        "Remove settings of cuDNN and cuBLAS where the device has neither",
        "在设备没有 cuDNN 和 cuBLAS 时删除其设置",
    ),
    "similar": Text(
        "Replace fused layers, fused optimizers and missing operators by equivalents",
        "将融合层、融合优化器和缺失算子替换为等价实现",
    ),
    "no_pin_memory": Text(
        "Set pin_memory=False in data loaders, as a vendor's guide recommends",
        "在数据加载器中设置 pin_memory=False，与厂商指南的建议一致",
    ),
    "specify_device": Text(
        "Let scripts take their device from the variable DEVICE_ID", "让脚本从环境变量 DEVICE_ID 获取设备"
    ),
}
_IMPLIED = {"fixed_shape": ("drop_last", "int32_labels")}


class ConversionRequest(TypedDict, total=False):
    """The options that `ferry scan` and `ferry convert` share; `ferry convert --help` says what each does."""

    keep_cuda: bool
    vendor_path: Sequence[Path]
    select: Sequence[str]
    ignore: Sequence[str]
    exclude: Sequence[str]
    rules: Sequence[Path]
    jobs: int
    channels_last: bool
    fixed_shape: bool
    drop_last: bool
    int32_labels: bool
    float32_data: bool
    blocking_copies: bool
    drop_cudnn_flags: bool
    similar: bool
    no_pin_memory: bool
    specify_device: bool
    data_parallel: Literal["single"] | None
    amp: str | None
    distributed: bool
    main: Path | None
    model: str
    batch: Literal["keep", "split"] | None
    sync_batchnorm: bool


def cores() -> int:
    """The processor cores that this process may use."""
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def plan_for(path: Path, to: str, **options: Unpack[ConversionRequest]) -> Plan:
    """The plan that these options describe for a folder or a file."""
    vendor_path = [*options.get("vendor_path", ())]
    target = find_target(to, vendor_path, options.get("keep_cuda", False))
    given = [name for name in (*OPT_INS, "amp", "distributed", "data_parallel") if options.get(name)]
    return Plan(
        target=target,
        options=frozenset(part for name in given for part in _IMPLIED.get(name, (name,))),
        select=_rule_ids(options.get("select", ())),
        ignore=_rule_ids(options.get("ignore", ())),
        exclude=tuple(options.get("exclude", ())),
        custom=_custom_rules(options.get("rules", ()), vendor_path),
        settings=PassSettings(_distributed(path, options), _amp_form(options.get("amp"), target)),
        jobs=options.get("jobs") or cores(),
    )


_OR_PORTABLE = Text(f"`{PORTABLE}` is for code that names no vendor", f"`{PORTABLE}` 用于不指明厂商的代码")


def find_target(name: str, vendor_path: list[Path], keep_cuda: bool = False) -> Target:
    """The target that --to names; with CUDA beside it if that is asked for."""
    is_portable = name.lower() == PORTABLE
    if is_portable and keep_cuda:
        raise FerryError(
            Text(
                "--keep-cuda keeps CUDA beside a vendor's device, but --to portable keeps CUDA anyway; leave "
                "--keep-cuda out",
                "--keep-cuda 用于在厂商设备之外保留 CUDA，而 --to portable 本来就保留 CUDA；请去掉 --keep-cuda",
            )
        )
    if is_portable:
        return portable_target()
    try:
        vendor = get_vendor(name, vendor_path)
    except VendorError as error:
        if name in vendor_names(vendor_path):
            raise
        raise VendorError(then(error.text, _OR_PORTABLE)) from None
    return keep_cuda_target(vendor) if keep_cuda else vendor_target(vendor)


def _rule_ids(given: Iterable[str]) -> tuple[str, ...]:
    """Ids or their beginnings, from `TF105 tf2` as well as `TF105,TF2`."""
    known = [rule.id for rule in all_rules()]
    chosen = [part.strip().upper() for text in given for part in text.split(",") if part.strip()]
    for part in chosen:
        if not part.startswith("USER") and not any(rule.startswith(part) for rule in known):
            raise FerryError(
                Text(
                    f"no rule begins with {part!r}; `ferry rules` lists them",
                    f"没有以 {part!r} 开头的规则；`ferry rules` 可列出全部规则",
                )
            )
    return tuple(chosen)


def _custom_rules(files: Sequence[Path], vendor_path: list[Path]) -> CustomRules:
    """The rules of the user's files, which may name any vendor."""
    if not files:
        return CustomRules()
    from torchferry.conversion.custom.json_format import load_custom_rules

    return load_custom_rules(*files, vendors=[*vendor_names(vendor_path), PORTABLE])


def _amp_form(given: str | None, target: Target) -> AmpForm | None:
    """Whose mixed precision --amp asks for."""
    form = AmpForm(given) if given else None
    if form is AmpForm.APEX and not target.vendor.has_apex:
        raise FerryError(
            Text(
                f"no apex is known for '{target.name}'; use --amp alone for PyTorch's autocast and GradScaler",
                f"'{target.name}' 没有已知的 apex；请只用 --amp，采用 PyTorch 的 autocast 和 GradScaler",
            )
        )
    return form


def _distributed(path: Path, options: ConversionRequest) -> Distributed | None:
    """The rewrite for one process per card; None if it is not asked for."""
    main, needed = options.get("main"), ("main", "model", "batch", "sync_batchnorm")
    if not options.get("distributed"):
        given = [f"--{name.replace('_', '-')}" for name in needed if options.get(name)]
        if given:
            raise FerryError(
                Text(
                    f"{given[0]} needs --distributed; add it, or leave {given[0]} out",
                    f"{given[0]} 需要 --distributed；请加上该选项，或去掉 {given[0]}",
                )
            )
        return None
    if main is None:
        raise FerryError(
            Text(
                "--distributed needs the training script; name it with --main FILE",
                "--distributed 需要知道训练脚本；请用 --main FILE 指定",
            )
        )
    return Distributed(
        _main_script(path, main),
        options.get("model", ""),
        options.get("batch") == "split",
        options.get("sync_batchnorm", False),
    )


def _main_script(root: Path, main: Path) -> str:
    """The script relative to the project; it may be given so, or as seen from here."""
    folder = (root.parent if root.is_file() else root).resolve()
    for place in (folder / main, main):
        found = place.resolve()
        if found.is_file() and found.is_relative_to(folder):
            if found.suffix not in PYTHON_SUFFIXES:
                raise InputError(
                    Text(
                        f"--main {main}: not a Python file; name the script that starts the training",
                        f"--main {main}：不是 Python 文件；请给出启动训练的脚本",
                    )
                )
            return found.relative_to(folder).as_posix()
    if main.is_file():
        raise InputError(
            Text(
                f"--main {main}: not in {root}; name a script of the project",
                f"--main {main}：不在 {root} 中；请给出项目中的脚本",
            )
        )
    raise InputError(
        Text(
            f"--main {main}: no such file in {root}; name the script that starts the training",
            f"--main {main}：{root} 中没有该文件；请给出启动训练的脚本",
        )
    )
