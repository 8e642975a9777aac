"""TF204: torch.nn.DataParallel, which most other accelerators don't have."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchferry.conversion.rule import Proposal, Rule
from torchferry.conversion.site import Site
from torchferry.finding import Kind, Message
from torchferry.text import Text
from torchferry.vendors.model import Support

_NAMES = frozenset(
    {
        "torch.nn.DataParallel",
        "torch.nn.parallel.DataParallel",
        "torch.nn.parallel.data_parallel.DataParallel",
        "torch.nn.parallel.data_parallel",
        "torch.nn.parallel.data_parallel.data_parallel",
    }
)
_RECIPE = Message(
    Text("{company} {verb} `DataParallel`", "{company} {verb} `DataParallel`"),
    why=Text(
        "On this target a program uses several cards with one process per card.",
        "在该目标上，程序通过每张卡一个进程来使用多卡。",
    ),
    do=Text(
        "Start one process per card with DistributedDataParallel: `ferry convert --distributed --main "
        "SCRIPT` writes it if the program is clear. By hand: start with `torchrun --nproc_per_node=N`, call "
        '`{module}.set_device(int(os.environ["LOCAL_RANK"]))` and '
        "`torch.distributed.init_process_group({backend})`, give the training DataLoader a "
        "DistributedSampler, and wrap the model in `torch.nn.parallel.DistributedDataParallel(model, "
        "device_ids=[local_rank])`. For one card, `ferry convert --data-parallel single` uses the model "
        "itself.",
        "改为每张卡一个进程的 DistributedDataParallel：程序结构清晰时，`ferry convert --distributed --main SCRIPT` 会自动改写。手动修"
        '改：用 `torchrun --nproc_per_node=N` 启动，调用 `{module}.set_device(int(os.environ["LOCAL_RANK"]))` 和 `'
        "torch.distributed.init_process_group({backend})`，为训练 DataLoader 使用 DistributedSampler，并用 `torch."
        "nn.parallel.DistributedDataParallel(model, device_ids=[local_rank])` 包装模型。只用一张卡时，`ferry convert "
        "--data-parallel single` 直接使用模型本身。",
    ),
)
_BESIDE = Message(
    Text("{company} {verb} the `DataParallel` branch", "{company} {verb} `DataParallel` 分支"),
    why=Text(
        "The program can already run with one process per card, and only this branch can't run on the target.",
        "程序已支持每张卡一个进程，只有该分支不能在目标上运行。",
    ),
    do=Text(
        "Start the program with one process per card. For one card, convert with `--data-parallel single`: "
        "this branch then uses the model itself.",
        "请以每张卡一个进程的方式启动程序。只用一张卡时，请用 `--data-parallel single` 转换：该分支会直接使用模型本身。",
    ),
)
_VERBS = {
    Support.UNSUPPORTED: Text("does not support", "不支持"),
    Support.UNKNOWN: Text("may not support", "可能不支持"),
}
_OTHERS, _DO_NOT = Text("Most other accelerators", "多数其他加速卡"), Text("do not support", "不支持")
_HARMLESS = Message(
    Text("Type check for `DataParallel`", "判断是否为 `DataParallel`"),
    why=Text("It only asks for the type, so it can stay.", "仅判断类型，可以保留。"),
)


def _check(site: Site[ast.expr]) -> Iterator[Proposal]:
    if isinstance(site.parent, ast.Attribute) or site.qualified(site.node) not in _NAMES:
        return
    vendor = site.target.vendor
    if vendor.data_parallel in (Support.SAME, Support.RENAMED):
        return
    is_base = isinstance(site.place.statement, ast.ClassDef)
    if not (site.parent.func is site.node if isinstance(site.parent, ast.Call) else is_base):
        yield site.remark(Kind.INFO, _HARMLESS)
        return
    is_unknown = vendor.data_parallel is Support.UNKNOWN and not site.target.is_portable
    words = {
        "company": _OTHERS if site.target.is_portable else vendor.company_name,
        "verb": _DO_NOT if site.target.is_portable else _VERBS[vendor.data_parallel],
        "module": vendor.torch_module,
        "backend": site.target.backend.code,
    }
    recipe = _BESIDE if b"DistributedDataParallel" in site.module.data else _RECIPE
    kind = Kind.UNKNOWN if is_unknown else Kind.TODO
    yield site.remark(kind, recipe.format(**words))


RULE = Rule(
    id="TF204",
    name="data-parallel",
    summary=Text(
        "Reports `DataParallel` with the recipe for `DistributedDataParallel`",
        "报告 `DataParallel`，并给出改为 `DistributedDataParallel` 的步骤",
    ),
    triggers=("DataParallel", "data_parallel"),
    tracks=_NAMES,
    nodes=(ast.Attribute, ast.Name),
    check=_check,
    names=("torch.nn.",),
)
