"""Whether the training uses what the zoo asks for: several processes, mixed precision; and the vendor's plugin."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.text import Text
from torchferry.zoo.code_features import Use, amp_names, distributed_names, is_launcher, uses
from torchferry.zoo.delivery import Delivery
from torchferry.zoo.model import Item, Status

ID = "code"
_FOUND = Text("{name}", "{name}")
_LIBRARY = Text("{name}, where its configuration asks for it", "{name}（取决于其配置）")
_NO_CODE = Text("no Python that can be read", "没有可读取的 Python 代码")
_ABSENT = Text("not found in the code", "代码中未找到")
_WANTED = {
    "distributed": Text(
        "the zoo wants training with DistributedDataParallel: `ferry convert --distributed` writes it",
        "要求使用 DDP 训练：`ferry convert --distributed` 可以写入",
    ),
    "amp": Text(
        "the zoo wants mixed precision: `ferry convert --amp` writes it",
        "要求使用混合精度（AMP）：`ferry convert --amp` 可以写入",
    ),
}
_PLUGIN = Text("imported nowhere", "没有导入")
_PLUGIN_WHY = Text(
    "a reviewer expects `import {plugin}`, though newer versions of torch load it themselves",
    "评审者期望看到 `import {plugin}`，尽管新版 torch 会自动加载",
)
_IMPORTED = Text("imported", "已导入")


def check(delivery: Delivery) -> Iterator[Item]:
    """An item for each feature that the zoo asks for, and one for the plugin."""
    if not delivery.modules:
        yield Item(ID, "code", Status.MISSING, _NO_CODE)
        return
    names = {"distributed": distributed_names(), "amp": amp_names(delivery.vendor)}
    wanted = {name: feature for feature in delivery.table.features for name in names.get(feature, ())}
    found: dict[str, Use] = {}
    for use in uses(delivery.modules):
        feature = wanted.get(use.name)
        if feature and (feature not in found or is_launcher(found[feature].name)):
            found[feature] = use
        # a library that does both is both
        if is_launcher(use.name):
            for each in delivery.table.features:
                found.setdefault(each, use)
    for feature in delivery.table.features:
        yield _item(feature, found.get(feature))
    yield from _plugin(delivery)


def _item(feature: str, use: Use | None) -> Item:
    if use is None:
        return Item(ID, feature, Status.MISSING, _ABSENT, _WANTED.get(feature, Text("", "")))
    if is_launcher(use.name):
        return Item(ID, feature, Status.NOTE, _LIBRARY.format(name=use.name), place=use.place)
    return Item(ID, feature, Status.FINE, _FOUND.format(name=use.name), place=use.place)


def _plugin(delivery: Delivery) -> Iterator[Item]:
    import ast

    plugin = delivery.vendor.plugin
    if not plugin:
        return
    for file, module in delivery.modules.items():
        for node in ast.walk(module.tree):
            named = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            named += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            if any(name.partition(".")[0] == plugin for name in named):
                yield Item(ID, plugin, Status.FINE, _IMPORTED, place=f"{file}:{getattr(node, 'lineno', 1)}")
                return
    yield Item(ID, plugin, Status.DOUBT, _PLUGIN, _PLUGIN_WHY.format(plugin=plugin))
