"""Whether the training uses what the zoo asks for: several processes, mixed precision; and the vendor's plugin."""

from __future__ import annotations

import re
from collections.abc import Iterator

from torchferry.report.checks import CheckResult, Status
from torchferry.text import Text
from torchferry.zoo.code_features import Certainty, FeatureUse, one_process, options_off_by_default, uses
from torchferry.zoo.delivery import READMES, Delivery, imported_modules

ID = "code"
_LIBRARY = Text("{name}, where its configuration asks for it", "{name}（取决于其配置）")
_OFF = Text("{name} is disabled there", "{name} 在该处被关闭")
_CUDA_ONLY = Text("{name}, which exists only for CUDA", "{name}，仅支持 CUDA")
_CUDA_ONLY_WHY = Text("remove it first; {wanted}", "请先去掉它；{wanted}")
_SWITCH = Text("{name}, only with {switch}", "{name}，仅在给出 {switch} 时")
_SWITCH_WHY = Text(
    "pass it in {script} and in the README's command lines",
    "请在 {script} 与 README 的命令行中给出该选项",
)
_NO_CODE = Text("no readable Python files", "没有可读取的 Python 代码")
_ABSENT = Text("not found in the code", "代码中未找到")
_ONE_PROCESS = Text(
    "only {name}, which drives all devices from one process", "只有 {name}，它在单进程中驱动所有设备"
)
_WANTED = {
    "distributed": Text(
        "the zoo requires training with DistributedDataParallel; `ferry convert --distributed` adds it",
        "模型库要求使用 DDP 训练；`ferry convert --distributed` 可以加入",
    ),
    "amp": Text(
        "the zoo requires mixed precision; `ferry convert --amp` adds it",
        "模型库要求使用混合精度（AMP）；`ferry convert --amp` 可以加入",
    ),
}
_PLUGIN = Text("not imported", "没有导入")
_PLUGIN_WHY = Text(
    "the zoo's guide requires `import {plugin}`, although newer versions of torch load it automatically",
    "模型库的指南要求 `import {plugin}`，尽管新版 torch 会自动加载",
)
_IMPORTED = Text("imported", "已导入")
_ORDER = list(Certainty)


def check(delivery: Delivery) -> Iterator[CheckResult]:
    """An item for each feature that the zoo asks for, and one for the plugin."""
    if not delivery.modules:
        yield CheckResult(ID, "code", Status.MISSING, _NO_CODE)
        return
    options = options_off_by_default(delivery.modules)
    for feature in delivery.table.features:
        found = uses(delivery.training, feature, delivery.vendor, options)
        best = min(found, key=lambda use: _ORDER.index(use.strength), default=None)
        yield _item(delivery, feature, best)
    yield from _plugin(delivery)


def _item(delivery: Delivery, feature: str, use: FeatureUse | None) -> CheckResult:
    wanted = _WANTED.get(feature, Text("", ""))
    if use is None:
        alone = one_process(delivery.training) if feature == "distributed" else None
        if alone:
            found = _ONE_PROCESS.format(name=alone.name)
            return CheckResult(ID, feature, Status.MISSING, found, wanted, place=alone.place)
        return CheckResult(ID, feature, Status.MISSING, _ABSENT, wanted)
    name = use.name
    if use.strength is Certainty.OFF:
        return CheckResult(ID, feature, Status.MISSING, _OFF.format(name=name), wanted, place=use.place)
    if use.strength is Certainty.CUDA_ONLY:
        why = _CUDA_ONLY_WHY.format(wanted=wanted)
        return CheckResult(ID, feature, Status.MISSING, _CUDA_ONLY.format(name=name), why, place=use.place)
    if use.strength is Certainty.LIBRARY:
        return CheckResult(ID, feature, Status.NOTE, _LIBRARY.format(name=name), place=use.place)
    # The command lines that the delivery shows may give the option.
    texts = (delivery.read(name) or "" for name in (delivery.table.test, *READMES.values()))
    switch = re.compile(rf"(?<![\w-]){re.escape(use.switch)}(?![\w-])")
    if use.strength is Certainty.SWITCHED and not any(map(switch.search, texts)):
        why = _SWITCH_WHY.format(script=delivery.table.test)
        found = _SWITCH.format(name=name, switch=use.switch)
        return CheckResult(ID, feature, Status.DOUBT, found, why, place=use.place)
    return CheckResult(ID, feature, Status.FINE, Text(name, name), place=use.place)


def _plugin(delivery: Delivery) -> Iterator[CheckResult]:
    plugin = delivery.vendor.plugin
    if not plugin:
        return
    for file, module in delivery.modules.items():
        for node, name in imported_modules(module.tree):
            if name.partition(".")[0] == plugin:
                yield CheckResult(ID, plugin, Status.FINE, _IMPORTED, place=f"{file}:{node.lineno}")
                return
    yield CheckResult(ID, plugin, Status.MISSING, _PLUGIN, _PLUGIN_WHY.format(plugin=plugin))
